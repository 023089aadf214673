public import SecureStream

/// A stream of bytes to a server, between two buffers in memory: TLS, or TCP as it is. Its owner moves bytes between the buffers and
/// a socket.
public protocol ByteStream: ~Copyable {
    /// True when nobody on the way can read what is written.
    static var isEncrypted: Bool { get }

    /// How far the stream is. Nothing is written before it is established.
    var state: TLSState { get }
    /// The protocol that both sides agreed on; nil when there is none.
    var negotiatedProtocol: String? { get }
    /// How many bytes there are for the network.
    var outgoingCount: Int { get }

    /// Takes bytes from the network.
    mutating func receive(_ bytes: RawSpan) throws(TLSError)
    /// Moves bytes for the network to the start of `output`; returns how many.
    mutating func nextOutgoing(into output: inout MutableRawSpan) -> Int
    /// Takes bytes for the server.
    mutating func write(_ plaintext: RawSpan) throws(TLSError)
    /// Moves bytes of the server to the start of `output`.
    mutating func read(into output: inout MutableRawSpan) throws(TLSError) -> TLSReadResult
    /// What the next stream to the same server can go on with; nil when there is nothing.
    func makeSession() -> TLSSession?
    /// Says to the server that nothing more comes, if the stream can say so.
    mutating func close()
}

extension TLSClient: ByteStream {
    public static var isEncrypted: Bool { true }

    public func makeSession() -> TLSSession? { session }
}
