extension ConfigurationReader {
    /// Reads `dns.secureListen`. Certificate and key are looked at, so that what is wrong with them is said before anything starts.
    ///
    /// - Parameter plain: Where questions are taken without TLS.
    static func secureListen(
        _ object: inout ConfigurationObject, besides plain: [AddressAndPort]
    ) -> SecureListenConfiguration? {
        var listen = SecureListenConfiguration()
        let (tls, https) = (object.field("tls"), object.field("https"))
        var known = plain
        listen.tls = tls?.secureAddresses("853", &known) ?? []
        listen.https = https?.secureAddresses("443", &known) ?? []
        let path = object.field("path")
        listen.path =
            path?.parsed("a path such as /dns-query") { path in
                let isValid = path.utf8.allSatisfy { 0x21...0x7E ~= $0 && !"?#{}".utf8.contains($0) }
                return path.hasPrefix("/") && path.utf8.count <= 255 && isValid ? path : nil
            } ?? listen.path
        if path != nil, https == nil { path?.note(.conflict("is of use with https only")) }
        // A client by TCP or TLS has one of 256 places.
        listen.maximumHandshakes = object.field("maxHandshakes")?.integer(in: 1...256) ?? listen.maximumHandshakes
        listen.maximumHandshakesPerClient =
            object.field("maxHandshakesPerClient")?.integer(in: 1...256) ?? listen.maximumHandshakesPerClient
        let certificate = object.requiredField("certificateFile")
        let key = object.requiredField("keyFile")
        guard tls != nil || https != nil else {
            (certificate ?? key ?? path)?.note(.conflict("is of use with tls or https only"))
            return nil
        }
        guard let certificate, let key, let certificateFile = certificate.path(), let (keyFile, rule) = key.secretFile()
        else { return nil }
        listen.certificateFile = certificateFile
        (listen.keyFile, listen.isKeyCredential) = (keyFile, rule == .credential)
        do throws(SecureCertificateError) {
            _ = try listen.makeContext(protocols: [])
        } catch {
            (error.isAboutKey ? key : certificate).note(.conflict("\(error)"))
            return nil
        }
        return listen
    }
}

extension ConfigurationField {
    /// The addresses of a list, none of which is among those that are known.
    fileprivate func secureAddresses(_ port: String, _ known: inout [AddressAndPort]) -> [AddressAndPort]? {
        list("a list of one address at least", atLeast: 1) { field in
            let expectation = "an address and a port such as 0.0.0.0:\(port) or [::1]:\(port)"
            guard let address = field.parsed(expectation, { AddressAndPort(parsing: $0) }) else { return nil }
            guard !known.contains(address) else {
                field.note(.conflict("is listened at already"))
                return nil
            }
            known.append(address)
            return address
        }
    }
}
