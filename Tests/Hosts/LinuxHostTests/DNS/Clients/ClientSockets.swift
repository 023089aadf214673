@testable import LinuxHost

/// Many clients' sockets.
struct ClientSockets: ~Copyable {
    private final class Holder {
        var socket: ClientSocket

        init(_ socket: consuming ClientSocket) { self.socket = socket }
    }

    private var holders: [Holder] = []

    /// None yet.
    init() {}

    /// Adds one.
    mutating func append(_ socket: consuming ClientSocket) { holders.append(Holder(socket)) }

    /// Writes to one.
    func write(_ bytes: [UInt8], to index: Int) throws { try holders[index].socket.write(bytes) }

    /// The next message of one, or what it has instead.
    func next(of index: Int) -> ClientSocket.Next { holders[index].socket.next() }

    /// The next datagram of one.
    func receive(at index: Int) throws -> [UInt8]? { try holders[index].socket.receive()?.message }

    /// Sends a datagram from one.
    func send(_ message: [UInt8], from index: Int) throws { try holders[index].socket.send(message) }
}
