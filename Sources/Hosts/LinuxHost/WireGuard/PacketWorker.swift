internal import OpenSSLCrypto
internal import Synchronization

/// A further thread that moves packets: one queue of the TUN device and one pair of sockets, with an event loop of its own. The
/// kernel spreads flows over the queues and senders over the pairs, so that the order within each is kept.
///
/// ```
///  owner's thread                      this thread
///    exchangeSockets ── order ──▶ between two turns: takes the new sockets, gives the old ones back
///          (waits)   ◀── done ───
///    stop ───────────── order ──▶ ends
/// ```
///
/// Sharing it is sound: `path` and `loop` belong to its thread; `order` and `parcel` go back and forth, the wake-up and the
/// semaphore saying whose turn it is; the rest does not change or is locked.
@safe final class PacketWorker: @unchecked Sendable {
    private enum Order {
        case none
        case exchangeSockets
        case stop
    }

    private enum Token {
        static let tun: UInt64 = 0
        static let socketV4: UInt64 = 1
        static let socketV6: UInt64 = 2
        static let wakeUp: UInt64 = 3
    }

    private let shared: SharedDevice
    private let orders: ThreadOrders
    private var thread: OwnThread?
    private var order = Order.none
    /// What sockets travel in, in both directions.
    private var parcel: UDPSocketPair?

    private var loop: EventLoop
    private var path: PacketPath
    private let published: Mutex<OffloadState>

    /// A worker for a queue of the device, which moves nothing before it is started.
    init(
        tun: consuming TUNDevice, shared: SharedDevice, cryptography: OpenSSLCryptography, offloads: Offloads,
        queries: QueryInbox?
    ) throws(SystemCallError) {
        let orders = try ThreadOrders()
        let loop = try EventLoop()
        let path = PacketPath(
            tun: tun, shared: shared, cryptography: cryptography, offloads: offloads, queries: queries)
        try loop.register(path.tun.descriptor, token: Token.tun, interest: .readable)
        try loop.register(orders.wakeUp.descriptor, token: Token.wakeUp, interest: .readable)
        published = Mutex(path.offloadState)
        self.shared = shared
        self.orders = orders
        self.loop = loop
        self.path = path
    }

    // MARK: For the owner's thread

    /// Starts the thread. Signals are left to the owner's.
    func start() throws(SystemCallError) {
        thread = try OwnThread { self.run() }
    }

    /// Gives the worker these sockets, or none, and returns those that it had. It no longer watches them.
    func exchangeSockets(_ new: consuming UDPSocketPair?) -> UDPSocketPair? {
        parcel = new
        give(.exchangeSockets)
        var old: UDPSocketPair?
        swap(&old, &parcel)
        return old
    }

    /// Ends the thread and waits for its end. The descriptors are closed with the worker.
    func stop() {
        guard let thread = thread.take() else { return }
        give(.stop)
        thread.join()
    }

    /// What became of the offloads on this worker's way.
    var offloadState: OffloadState { published.withLock { $0 } }

    /// Hands an order over and waits until it is carried out.
    private func give(_ order: Order) {
        self.order = order
        orders.give()
    }

    // MARK: The thread

    private func run() {
        var events = EventBuffer(capacity: 16)
        var state = path.offloadState
        while true {
            do throws(SystemCallError) {
                try loop.wait(until: nil, into: &events)
            } catch {
                // Nothing but a wrong argument or a lack of memory in the kernel does this to a loop that was set up.
                preconditionFailure("a worker's loop failed: \(error)")
            }
            for index in 0..<events.count {
                switch events[index].token {
                case Token.tun: readTUN()
                case Token.socketV4: readSocket(.v4)
                case Token.socketV6: readSocket(.v6)
                default: if orders.wakeUp.clear(), carryOut() { return }
                }
            }
            shared.wakeIfNeeded()
            let current = path.offloadState
            if current != state {
                state = current
                published.withLock { $0 = current }
            }
        }
    }

    /// Moves packets. When the device turns out to be gone, the owner hears of it by its own queue.
    private func readTUN() {
        do {
            try path.readTUN()
        } catch {
            try? loop.unregister(path.tun.descriptor)
        }
    }

    private func readSocket(_ family: AddressFamily) {
        // As above. The event may be of sockets that went meanwhile: then there is nothing to read.
        try? path.readSocket(family)
    }

    /// Does what the owner wants. True when it wants the end.
    private func carryOut() -> Bool {
        let isEnd = order == .stop
        if order == .exchangeSockets { exchange() }
        order = .none
        orders.carriedOut()
        return isEnd
    }

    private func exchange() {
        var new: UDPSocketPair?
        swap(&new, &parcel)
        switch new {
        case .some(let sockets):
            // A pair that cannot be watched stays silent, as one whose datagrams are lost; the peers send again to another.
            try? sockets.register(.v4, with: loop, token: Token.socketV4)
            try? sockets.register(.v6, with: loop, token: Token.socketV6)
        case .none: break
        }
        parcel = path.exchangeSockets(new)
        switch parcel {
        case .some(let sockets): sockets.unregister(from: loop)
        case .none: break
        }
    }
}
