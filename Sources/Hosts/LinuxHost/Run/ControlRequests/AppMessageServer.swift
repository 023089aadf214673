internal import ByteAccess
internal import Provider

/// The socket that other programs send requests to, and those that are connected. Each sends one request at a time and waits for
/// the answer; the next is read when the one before was answered.
struct AppMessageServer: ~Copyable {
    /// What an event of a client came to.
    enum Outcome: Equatable {
        /// Nothing that concerns anybody else.
        case nothing
        /// It asks for something.
        case request(AppMessageID, ControlRequest)
        /// It sent a line that is no request; it waits for an answer all the same.
        case invalid(AppMessageID, ControlRequestError)
        /// It went away, and needs no answer to its request any more.
        case left(AppMessageID)
    }

    private static let maximumClients = 80
    private static let outputCapacity = 256 * 1_024

    private final class Client {
        var stream: UNIXConnection
        /// The request that waits for its answer.
        var pending: AppMessageID?

        init(_ stream: consuming UNIXConnection) { self.stream = stream }
    }

    /// The listening socket.
    let listener: UNIXListener
    private let listenerToken: UInt64
    private let clientTokens: Range<UInt64>
    private var nextToken: UInt64
    private var clients: [UInt64: Client] = [:]
    private var askers: [AppMessageID: UInt64] = [:]
    private var lastID: UInt64 = 0

    /// A server whose events carry these tokens: of the listener, and of clients, each of which has another.
    init(_ listener: consuming UNIXListener, listenerToken: UInt64, clientTokens: Range<UInt64>) {
        self.listener = listener
        self.listenerToken = listenerToken
        self.clientTokens = clientTokens
        nextToken = clientTokens.lowerBound
    }

    /// Starts watching for clients.
    func register(with loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.register(listener.descriptor, token: listenerToken, interest: .readable)
    }

    /// True when events with this token are about a client.
    func owns(_ token: UInt64) -> Bool { clientTokens.contains(token) }

    /// Accepts the clients that wait. One too many is turned away.
    mutating func accept(_ loop: borrowing EventLoop) {
        while let descriptor = try? listener.accept() {
            guard clients.count < Self.maximumClients, nextToken < clientTokens.upperBound else { continue }
            let stream = UNIXConnection(
                adopting: descriptor, inputCapacity: ControlRequest.maximumByteCount,
                outputCapacity: Self.outputCapacity)
            guard (try? loop.register(stream.descriptor, token: nextToken, interest: .readable)) != nil else {
                continue
            }
            clients[nextToken] = Client(stream)
            nextToken += 1
        }
    }

    /// Reads from, or writes on to, a client.
    mutating func serve(_ token: UInt64, _ loop: borrowing EventLoop) -> Outcome {
        guard let client = clients[token] else { return .nothing }
        do throws(SystemCallError) {
            if client.stream.hasUnsentOutput {
                if try client.stream.flush() { try watch(client, token, loop) }
                return .nothing
            }
            switch try client.stream.fill() {
            case .received, .wouldBlock: return nextRequest(of: client, token)
            case .endOfStream: return drop(token, loop)
            case .bufferFull:
                // Either a line that is too long, or many of them while one is being answered: no program of good will does so.
                return drop(token, loop)
            }
        } catch {
            return drop(token, loop)
        }
    }

    /// Answers a request with a line. Returns the request that the client sent meanwhile.
    mutating func reply(_ id: AppMessageID, _ line: String, _ loop: borrowing EventLoop) -> Outcome {
        guard let token = askers.removeValue(forKey: id), let client = clients[token] else { return .nothing }
        client.pending = nil
        do throws(SystemCallError) {
            guard client.stream.write(line.utf8Span.span.octets) else { return drop(token, loop) }
            if !(try client.stream.flush()) { try watch(client, token, loop) }
        } catch {
            return drop(token, loop)
        }
        return nextRequest(of: client, token)
    }

    /// Sends what can be sent at once, and lets all clients go.
    mutating func removeAll() {
        for client in clients.values { _ = try? client.stream.flush() }
        clients.removeAll()
        askers.removeAll()
    }

    private mutating func nextRequest(of client: Client, _ token: UInt64) -> Outcome {
        guard client.pending == nil, let length = Self.lineLength(client.stream) else { return .nothing }
        lastID += 1
        let id = AppMessageID(rawValue: lastID)
        client.pending = id
        askers[id] = token
        defer { client.stream.consume(length + 1) }
        do throws(ControlRequestError) {
            return .request(id, try Self.request(client.stream, length))
        } catch {
            return .invalid(id, error)
        }
    }

    private static func lineLength(_ stream: borrowing UNIXConnection) -> Int? {
        let bytes = stream.unread
        for offset in bytes.byteOffsets where bytes.uint8(at: offset) == UInt8(ascii: "\n") { return offset }
        return nil
    }

    private static func request(
        _ stream: borrowing UNIXConnection, _ length: Int
    ) throws(ControlRequestError) -> ControlRequest {
        let bytes = stream.unread
        return try ControlRequest(reading: bytes.extracting(first: length))
    }

    private func watch(_ client: Client, _ token: UInt64, _ loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.modify(
            client.stream.descriptor, token: token, interest: client.stream.hasUnsentOutput ? .writable : .readable)
    }

    private mutating func drop(_ token: UInt64, _ loop: borrowing EventLoop) -> Outcome {
        guard let client = clients.removeValue(forKey: token) else { return .nothing }
        try? loop.unregister(client.stream.descriptor)
        guard let pending = client.pending else { return .nothing }
        askers[pending] = nil
        return .left(pending)
    }
}
