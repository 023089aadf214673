/// The control socket of an interface and the clients that are connected to it: what `wg` talks to.
struct ControlServer: ~Copyable {
    /// How many clients may be connected at once. More wait until one leaves.
    private static let maximumClients = 64

    /// The listening socket.
    let listener: UNIXListener
    private let listenerToken: UInt64
    private let fileToken: UInt64
    private let clientTokens: Range<UInt64>
    private var clients: [UInt64: ControlClient] = [:]
    private var nextToken: UInt64
    private var isAccepting = true

    /// A server whose events carry these tokens: of the listener, of the socket's file, and of clients, each of which has another.
    init(_ listener: consuming UNIXListener, listenerToken: UInt64, fileToken: UInt64, clientTokens: Range<UInt64>) {
        self.listener = listener
        self.listenerToken = listenerToken
        self.fileToken = fileToken
        self.clientTokens = clientTokens
        nextToken = clientTokens.lowerBound
    }

    /// Starts watching for clients and for the removal of the socket's file.
    func register(with loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.register(listener.descriptor, token: listenerToken, interest: .readable)
        try loop.register(listener.watch.descriptor, token: fileToken, interest: .readable)
    }

    /// True when an event is about the removal of the socket's file, and the file is gone.
    func isFileRemoved() -> Bool { (try? listener.watch.isFileRemoved()) ?? true }

    /// Accepts the clients that wait.
    mutating func accept(_ loop: borrowing EventLoop) {
        while clients.count < Self.maximumClients {
            guard let descriptor = try? listener.accept() else { return }
            let client = ControlClient(ControlConnection(adopting: descriptor))
            let token = nextToken
            nextToken = nextToken + 1 < clientTokens.upperBound ? nextToken + 1 : clientTokens.lowerBound
            guard clients[token] == nil, (try? client.connection.register(with: loop, token: token)) != nil else {
                continue
            }
            clients[token] = client
        }
        setAccepting(false, loop)
    }

    /// The client that events with this token are about.
    func client(_ token: UInt64) -> ControlClient? { clients[token] }

    /// Goes on watching a client that was served, or lets it go when it is over.
    mutating func served(_ client: ControlClient, _ token: UInt64, isAlive: Bool, _ loop: borrowing EventLoop) {
        if isAlive, (try? client.connection.update(loop, token: token)) != nil { return }
        client.connection.unregister(from: loop)
        clients[token] = nil
        setAccepting(true, loop)
    }

    /// Lets all clients go.
    mutating func removeAll() { clients.removeAll() }

    private mutating func setAccepting(_ accepts: Bool, _ loop: borrowing EventLoop) {
        guard accepts != isAccepting else { return }
        isAccepting = accepts
        try? loop.modify(listener.descriptor, token: listenerToken, interest: accepts ? .readable : [])
    }
}
