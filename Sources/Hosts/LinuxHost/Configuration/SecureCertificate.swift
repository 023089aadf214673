internal import SecureStream

/// Why the certificate for clients by TLS cannot be used, with its key.
enum SecureCertificateError: Error, Hashable, Sendable {
    /// A file cannot be read, or others can.
    case file(path: String, isKey: Bool, ConfigurationFileError)
    /// What is in it is not right.
    case content(path: String, isKey: Bool, ServerCertificateError)

    /// True when the key's file is to blame.
    var isAboutKey: Bool {
        switch self {
        case .file(_, let isKey, _), .content(_, let isKey, _): isKey
        }
    }
}

extension SecureCertificateError: CustomStringConvertible {
    /// The file, and what is wrong with it.
    var description: String {
        switch self {
        case .file(let path, _, let error): "\(path) \(error)"
        case .content(let path, _, let error): "\(path) \(error)"
        }
    }
}

extension SecureListenConfiguration {
    /// The most bytes of each of the files.
    private static let maximumByteCount = 1 << 20

    /// Reads certificate and key, as they are at this moment.
    func makeContext(protocols: [String]) throws(SecureCertificateError) -> TLSServerContext {
        let certificates = try Self.read(certificateFile, isKey: false, .any)
        let key = try Self.read(keyFile, isKey: true, isKeyCredential ? .credential : .secret)
        do throws(ServerCertificateError) {
            return try certificates.withBytes { certificates throws(ServerCertificateError) in
                try key.withBytes { key throws(ServerCertificateError) in
                    try TLSServerContext(certificates: certificates, key: key, protocols: protocols)
                }
            }
        } catch {
            let isAboutKey = !error.isAboutCertificate
            throw .content(path: isAboutKey ? keyFile : certificateFile, isKey: isAboutKey, error)
        }
    }

    private static func read(
        _ path: String, isKey: Bool, _ rule: ConfigurationFile.Rule
    ) throws(SecureCertificateError) -> ConfigurationFile {
        do throws(ConfigurationFileError) {
            return try ConfigurationFile.read(path, rule: rule, limit: maximumByteCount)
        } catch { throw .file(path: path, isKey: isKey, error) }
    }
}
