/// Why certificate and key cannot be a server's.
public enum ServerCertificateError: Error, Hashable, Sendable {
    /// There is no certificate in PEM form.
    case noCertificate
    /// One of the certificates is broken.
    case brokenCertificate
    /// OpenSSL does not take the certificate, for this reason: its key is too short, for one.
    case refusedCertificate(reason: String)
    /// There is no private key in PEM form, or it is broken, or needs a passphrase.
    case noKey
    /// The key belongs to another certificate.
    case otherKey
    /// OpenSSL could not allocate, or lacks something that it needs.
    case unavailable
}

extension ServerCertificateError: CustomStringConvertible {
    /// What is wrong, in words that follow the name of the file.
    public var description: String {
        switch self {
        case .noCertificate: "has no certificate in it; expected PEM, the server's own certificate first"
        case .brokenCertificate: "has a certificate in it that cannot be read"
        case .refusedCertificate(let reason): "has a certificate in it that cannot be used: \(reason)"
        case .noKey: "has no private key in it; expected PEM without a passphrase"
        case .otherKey: "has the key of another certificate in it"
        case .unavailable: "cannot be used: TLS is not available"
        }
    }

    /// True when the certificate's file is to blame, and not the key's.
    public var isAboutCertificate: Bool {
        switch self {
        case .noCertificate, .brokenCertificate, .refusedCertificate, .unavailable: true
        case .noKey, .otherKey: false
        }
    }
}
