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

/// Takes bytes out of where they are stored, as many as a TLS record has at most (RFC 8446 §5.1): a span of them does not lock what they
/// are stored in.
func takeBuffer(_ stored: inout [UInt8]) -> [UInt8] {
    var taken: [UInt8] = []
    swap(&taken, &stored)
    if taken.isEmpty { taken = [UInt8](repeating: 0, count: 16_384) }
    return taken
}

extension TLSClient: ByteStream {
    public static var isEncrypted: Bool { true }

    public func makeSession() -> TLSSession? { session }
}
