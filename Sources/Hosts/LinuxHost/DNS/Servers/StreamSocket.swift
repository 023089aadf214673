internal import ByteAccess
internal import EncryptedDNS
internal import Glibc
internal import IPPacket
internal import Provider

/// A connection to a server with its socket: moves bytes between the two.
///
///     connecting ── TCP is there ──▶ handshaking ── server trusted ──▶ ready
///          └────────── failed ───────────┴──── ended by anybody ────────┴──▶ over
final class StreamSocket {
    /// What came of reading or writing.
    enum Outcome {
        /// Nothing that concerns the connection as a whole.
        case goesOn
        /// The socket has nothing more, or has failed.
        case ended
    }

    /// Whether it takes another query.
    enum Capacity {
        case takesMore
        /// Not before some that are under way have ended.
        case busy
        case takesNoMore
    }

    /// What its upstream knows it by.
    let id: ConnectionID
    /// The upstream.
    let upstream: ServerUpstream
    /// The server's address.
    let address: IPAddress
    /// What the event loop reports it under.
    var token: UInt64 = 0
    /// What is spoken; nil until TCP is there.
    var connection: (any DNSConnection & ~Copyable)?
    /// When TCP has to be there.
    let connectDeadline: Instant
    /// True when the server has been found to be who it should be.
    var isReady = false
    /// What the upstream was told of it.
    var capacity = Capacity.takesMore
    /// When the last answer came.
    var lastAnswer: Instant?
    /// True while it is doubtful that it brings answers at all.
    var isDoubtful = false
    /// True when it is in the list of those with something to be written.
    var isDirty = false
    /// True when nothing happens on it any more.
    var isOver = false
    private let socket: ServerSocket
    /// What was taken from the connection and not by the socket.
    private var unsent: [UInt8] = []
    /// True until the event loop says that the socket takes more.
    private var isBlocked = false

    /// How long TCP may take.
    static let connectInterval = Interval.milliseconds(2_500)

    /// A connection over a socket that is being connected.
    init(
        _ socket: consuming ServerSocket, id: ConnectionID, upstream: ServerUpstream, address: IPAddress,
        at now: Instant
    ) {
        self.socket = socket
        self.id = id
        self.upstream = upstream
        self.address = address
        connectDeadline = now + Self.connectInterval
    }

    /// Tells the event loop to watch the socket for both directions, each time something changes.
    func register(_ loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.register(socket.descriptor, token: token, interest: [.readable, .writable], trigger: .edge)
    }

    /// What became of connecting, once the event loop says that something did.
    func takeConnectResult() -> Result<Void, SystemCallError> {
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        // The pointers live for the call and the length is the number's.
        guard unsafe getsockopt(socket.descriptor.rawValue, SOL_SOCKET, SO_ERROR, &error, &length) == 0 else {
            return .failure(SystemCallError("getsockopt", errno: errno))
        }
        return error == 0 ? .success(()) : .failure(SystemCallError("connect", errno: error))
    }

    /// Reads all that there is, by way of `buffer`.
    func receive(by buffer: inout [UInt8], untilEnd: Bool, at now: Instant) -> Outcome {
        while true {
            let capacity = buffer.count
            // The pointer and the length are the array's.
            let count = unsafe buffer.withUnsafeMutableBytes {
                unsafe recv(socket.descriptor.rawValue, $0.baseAddress, $0.count, 0)
            }
            if count > 0 {
                connection?.receive(buffer.span.octets.extracting(..<count), at: now)
                if connection?.isOver ?? true { return .goesOn }
                // Less than was asked for is all that there is; what comes later is another event.
                if count < capacity, !untilEnd { return .goesOn }
                continue
            }
            if count == 0 { return .ended }
            let error = errno
            if error == EINTR { continue }
            return error == EAGAIN ? .goesOn : .ended
        }
    }

    /// The socket takes more.
    func unblock() { isBlocked = false }

    /// Writes what there is, as far as the socket takes it, by way of `buffer`.
    func flush(by buffer: inout [UInt8]) -> Outcome {
        while !isBlocked {
            if unsent.isEmpty {
                guard let count = take(into: &buffer) else { return .goesOn }
                guard let sent = send(buffer.span.octets.extracting(..<count)) else { return .ended }
                if sent < count { unsent = Array(buffer[sent..<count]) }
            } else {
                guard let sent = send(unsent.span.octets) else { return .ended }
                unsent.removeFirst(sent)
            }
        }
        return .goesOn
    }

    /// Bytes of the connection for the socket; nil when there are none.
    private func take(into buffer: inout [UInt8]) -> Int? {
        guard let outgoing = connection?.outgoingCount, outgoing > 0 else { return nil }
        var span = buffer.mutableSpan
        var octets = span.mutableOctets
        let count = connection?.nextOutgoing(into: &octets) ?? 0
        return count > 0 ? count : nil
    }

    /// How many bytes the socket took; nil when it has failed.
    private func send(_ bytes: RawSpan) -> Int? {
        while true {
            // The pointer and the length are the span's. A closed other end is an error and no signal.
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.send(socket.descriptor.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count >= 0 {
                if count < bytes.byteCount { isBlocked = true }
                return count
            }
            let error = errno
            if error == EINTR { continue }
            guard error == EAGAIN else { return nil }
            isBlocked = true
            return 0
        }
    }
}
