import TestSupport

@testable import LinuxHost

extension ClientRig {
    /// Listens for TLS at addresses, with a certificate that `openssl` makes.
    mutating func listenForTLS(at addresses: [String], handshakes: Int = 64, perClient: Int = 16) throws {
        try inTemporaryFolder { folder in
            try run(
                "sh", "-ec",
                """
                cd \(folder)
                openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout own.key -out own.pem \
                    -subj /CN=own -days 2 2>log
                chmod 600 own.key
                """)
            var configuration = SecureListenConfiguration()
            configuration.tls = addresses.compactMap { AddressAndPort(parsing: $0) }
            (configuration.certificateFile, configuration.keyFile) = ("\(folder)/own.pem", "\(folder)/own.key")
            configuration.maximumHandshakes = handshakes
            configuration.maximumHandshakesPerClient = perClient
            let opened = try side.openSecureListeners(for: configuration)
            side.adopt(opened, loop)
        }
    }
}
