internal import DNSProxy
internal import Glibc

/// A query by UDP and its socket.
final class DatagramExchange {
    let exchange: Exchange
    let upstream: ServerUpstream
    /// Which of the upstream's addresses was asked.
    let addressIndex: Int
    /// How many of the upstream's addresses were asked before.
    let triedCount: Int
    /// What the event loop reports the socket under.
    var token: UInt64 = 0
    private let socket: ServerSocket

    /// A query that is to be sent.
    init(
        _ exchange: Exchange, _ socket: consuming ServerSocket, _ upstream: ServerUpstream, addressIndex: Int,
        triedCount: Int
    ) {
        self.exchange = exchange
        self.upstream = upstream
        self.addressIndex = addressIndex
        self.triedCount = triedCount
        self.socket = socket
    }

    /// Tells the event loop to watch the socket.
    func register(_ loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.register(socket.descriptor, token: token, interest: .readable)
    }

    /// Sends the query.
    func send(_ query: RawSpan) throws(SystemCallError) { try socket.send(query) }

    /// Reads a datagram of the server into `buffer`; returns its length, nil when there is none. Throws what the network says.
    func receive(into buffer: inout [UInt8]) throws(SystemCallError) -> Int? { try socket.receive(into: &buffer) }
}

extension ServerSocket {
    /// Sends a datagram.
    func send(_ datagram: RawSpan) throws(SystemCallError) {
        _ = try systemCall("send") {
            // The pointer and the length are the span's.
            unsafe datagram.withUnsafeBytes {
                unsafe Glibc.send(descriptor.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
        }
    }

    /// Reads a datagram into `buffer`; returns its length, nil when there is none. Throws what the network says.
    func receive(into buffer: inout [UInt8]) throws(SystemCallError) -> Int? {
        do throws(SystemCallError) {
            return try systemCall("recv") {
                // The pointer and the length are the array's.
                unsafe buffer.withUnsafeMutableBytes {
                    unsafe recv(descriptor.rawValue, $0.baseAddress, $0.count, 0)
                }
            }
        } catch {
            if error.errno == EAGAIN { return nil }
            throw error
        }
    }
}
