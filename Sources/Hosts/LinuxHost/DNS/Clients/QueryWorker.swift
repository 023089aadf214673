internal import Synchronization

/// A further thread that reads queries by UDP, from sockets of its own at the same addresses, and sends those answers that there are at
/// once. The others are the proxy's own thread's business.
///
/// Sharing it is sound: its thread has `loop`, `service` and `sockets` while it runs, and the owner's thread has them before and after;
/// the rest does not change or is locked.
@safe final class QueryWorker: @unchecked Sendable {
    private static let wakeUpToken = UInt64.max - 1
    /// The size of the thread's stack in bytes.
    private static let stackSize = 256 * 1_024

    private let shared: SharedProxy
    private let wakeUp: WakeUp
    private var thread: OwnThread?
    private var loop: EventLoop
    private var service = DatagramService()
    private var sockets: [DatagramSocket] = []
    private let published = Mutex(DatagramCounts())

    /// A worker without sockets, which does nothing before it is started.
    init(shared: SharedProxy) throws(SystemCallError) {
        let wakeUp = try WakeUp()
        let loop = try EventLoop()
        try loop.register(wakeUp.descriptor, token: Self.wakeUpToken, interest: .readable)
        self.shared = shared
        self.wakeUp = wakeUp
        self.loop = loop
    }

    // MARK: For the owner's thread

    /// Watches these sockets and no others. Only while it is stopped. When it throws, it watches what it watched before.
    func watch(_ new: [DatagramSocket]) throws(SystemCallError) {
        precondition(!isRunning, "a worker that runs has its sockets")
        var added: [DatagramSocket] = []
        for socket in new where !sockets.contains(where: { $0 === socket }) {
            do throws(SystemCallError) {
                try loop.register(socket.descriptor, token: UInt64(socket.number), interest: .readable)
            } catch {
                for socket in added { try? loop.unregister(socket.descriptor) }
                throw error
            }
            added.append(socket)
        }
        for socket in sockets where !new.contains(where: { $0 === socket }) {
            // It was registered.
            try? loop.unregister(socket.descriptor)
        }
        sockets = new
    }

    /// Starts the thread. Signals are left to the owner's.
    func start() throws(SystemCallError) {
        precondition(!isRunning, "a worker that runs already")
        thread = try OwnThread(stackSize: Self.stackSize) { self.run() }
    }

    /// Ends the thread, if there is one, and waits for its end. What it did not read stays in the sockets.
    func stop() {
        guard let thread = thread.take() else { return }
        wakeUp.signal()
        thread.join()
    }

    private var isRunning: Bool {
        switch thread {
        case .some: true
        case .none: false
        }
    }

    /// What became of its datagrams.
    var counts: DatagramCounts { published.withLock { $0 } }

    // MARK: The thread

    private func run() {
        var events = EventBuffer(capacity: 16)
        while true {
            do throws(SystemCallError) {
                try loop.wait(until: nil, into: &events)
            } catch {
                // Nothing but a wrong argument or a lack of memory in the kernel does this to a loop that was set up.
                preconditionFailure("a worker's loop failed: \(error)")
            }
            var isEnd = false
            for index in 0..<events.count {
                let token = events[index].token
                if let socket = sockets.first(where: { UInt64($0.number) == token }) {
                    service.serve(socket, shared)
                } else if wakeUp.clear() {
                    isEnd = true
                }
            }
            // For what is answered, the proxy rarely wants anything done.
            if service.hasPending {
                service.hasPending = false
                shared.wakeIfNeeded()
            }
            let counts = service.counts
            published.withLock { $0 = counts }
            if isEnd { return }
        }
    }
}
