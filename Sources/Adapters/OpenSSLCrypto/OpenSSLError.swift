/// Why OpenSSL cannot serve as this program's cryptography.
public enum OpenSSLError: Error, Hashable, Sendable {
    /// The library has no such algorithm, or its configuration hides it.
    case algorithmUnavailable(OpenSSLAlgorithm)
    /// A context could not be allocated.
    case outOfMemory
}

/// An algorithm this adapter asks OpenSSL for.
public enum OpenSSLAlgorithm: Hashable, Sendable {
    /// RFC 8439.
    case chaCha20Poly1305
    /// RFC 7748.
    case x25519
}
