/// Why a TLS stream cannot be made or used.
public enum TLSError: Error, Hashable, Sendable {
    /// The server's certificate is not to be trusted. No application byte has been sent.
    case untrusted(CertificateProblem)
    /// Both sides could not agree, or one broke the protocol: OpenSSL's reason code.
    case protocolFailure(reason: Int32)
    /// The other side's stream ended without saying so: what was read may not be all.
    case truncated
    /// Plaintext was to be written before the handshake was done.
    case notEstablished
    /// The stream was closed, or has failed before.
    case closed
    /// The name of the server is empty, too long, or holds what no name has.
    case invalidServerName
    /// A protocol for ALPN is empty or longer than 255 bytes.
    case invalidProtocol
    /// The file with certificates of authorities cannot be read, or there is none in it.
    case unreadableAuthorities
    /// The file with the server's own certificate or key cannot be read, or they do not belong together.
    case unreadableCertificate
    /// A client sends, or announces, more before the handshake is done than any client has to.
    case handshakeTooLong
    /// The session is of another server, or of another context.
    case foreignSession
    /// OpenSSL could not allocate, or lacks something that it needs.
    case unavailable
}

/// What is wrong with a server's certificate, or with the chain from it to an authority.
public enum CertificateProblem: Hashable, Sendable {
    /// The server sent none.
    case missing
    /// Its time is over.
    case expired
    /// Its time has not come.
    case notYetValid
    /// It, or the last of its chain, vouches for itself and is not among the authorities.
    case selfSigned
    /// No authority is known that vouches for it.
    case unknownAuthority
    /// It is for other names.
    case wrongName
    /// It is for other addresses.
    case wrongAddress
    /// None of the keys that may be pinned is.
    case pinMismatch
    /// A key or signature is too weak: RSA below 2048 bits, elliptic curves below 256, or a hash below SHA-256.
    case weak
    /// It is not for servers, or an authority in the chain is none.
    case wrongPurpose
    /// Something else: OpenSSL's number.
    case other(Int32)
}
