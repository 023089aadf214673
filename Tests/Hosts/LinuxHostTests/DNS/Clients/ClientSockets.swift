import CLinux
import Glibc

@testable import LinuxHost

/// Many clients' sockets.
struct ClientSockets: ~Copyable {
    private final class Holder {
        var socket: ClientSocket

        init(_ socket: consuming ClientSocket) { self.socket = socket }

        var isReadable: Bool {
            var octet: UInt8 = 0
            // One octet is looked at and left.
            return unsafe recv(socket.descriptor.rawValue, &octet, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) >= 0
        }
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

    /// How many have something to read, or are over.
    var readableCount: Int { holders.count(where: \.isReadable) }

    /// Closes those that have something to read, or are over; returns how many.
    mutating func removeReadable() -> Int {
        let before = holders.count
        holders.removeAll(where: \.isReadable)
        return before - holders.count
    }

    /// The next datagram of one.
    func receive(at index: Int) throws -> [UInt8]? { try holders[index].socket.receive()?.message }

    /// Sends a datagram from one.
    func send(_ message: [UInt8], from index: Int) throws { try holders[index].socket.send(message) }
}
