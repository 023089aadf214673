internal import CLinux
internal import Glibc
internal import IPPacket
internal import PacketTunnel
internal import Provider
internal import Synchronization
internal import WireGuard

/// Looks names up as the machine does (`getaddrinfo`: hosts file, resolvers, their order of preference, RFC 6724), each in a
/// thread of its own, because the library waits as long as it likes: a resolver that is dead holds nothing up but its thread.
final class NameResolution: Sendable {
    /// How a look-up ended.
    struct Outcome: Sendable {
        /// The look-up, by the number that it was given.
        var id: UInt64
        /// The endpoints in the order of preference, at least one, or why there are none.
        var result: Result<[Endpoint], ResolutionFailure>
    }

    /// The most look-ups at one time, given-up ones that the library still waits for included.
    static let limit = 64
    /// EAI_NODATA of the C library, which shows it to GNU programs only: the name is there and has no address.
    private static let noData: Int32 = -5
    private static let stackLength = 256 * 1_024
    /// How long after a temporary failure it is tried again: a machine that comes up has its resolver a moment later.
    private static let pause = Interval.seconds(1)

    private struct State {
        var running = 0
        var wanted: Set<UInt64> = []
        var finished: [Outcome] = []
    }

    /// Readable when look-ups ended.
    let wakeUp: WakeUp
    private let state = Mutex(State())

    init() throws(SystemCallError) {
        wakeUp = try WakeUp()
    }

    /// Looks a name up. What comes of it by the deadline is told by `takeOutcomes()` under the number `id`.
    func start(_ name: EndpointName, id: UInt64, deadline: Instant) {
        let isAdmitted = state.withLock { state in
            guard state.running < Self.limit else { return false }
            state.running += 1
            state.wanted.insert(id)
            return true
        }
        guard isAdmitted, startThread(LookUp(owner: self, name: name, id: id, deadline: deadline)) else {
            if isAdmitted { state.withLock { $0.running -= 1 } }
            return finish(id, .failure(.temporaryFailure), isRunning: false)
        }
    }

    /// Tells nothing more about a look-up.
    func cancel(_ id: UInt64) {
        _ = state.withLock { $0.wanted.remove(id) }
    }

    /// The look-ups that ended since the last call.
    func takeOutcomes() -> [Outcome] {
        _ = wakeUp.clear()
        return state.withLock { state in
            defer { state.finished.removeAll() }
            return state.finished
        }
    }

    private final class LookUp: Sendable {
        let owner: NameResolution
        let name: EndpointName
        let id: UInt64
        let deadline: Instant

        init(owner: NameResolution, name: EndpointName, id: UInt64, deadline: Instant) {
            self.owner = owner
            self.name = name
            self.id = id
            self.deadline = deadline
        }
    }

    private func startThread(_ lookUp: LookUp) -> Bool {
        // The thread takes over a reference, which it gives up when it ends.
        let reference = unsafe Unmanaged.passRetained(lookUp)
        let error = unsafe clinux_thread_start_detached(
            Self.stackLength,
            { argument in
                guard let argument = unsafe argument else { return nil }
                // What `startThread` passed.
                let lookUp = unsafe Unmanaged<LookUp>.fromOpaque(argument).takeRetainedValue()
                lookUp.owner.run(lookUp)
                return nil
            }, reference.toOpaque())
        if error != 0 { unsafe reference.release() }
        return error == 0
    }

    private func run(_ lookUp: LookUp) {
        var result = Self.lookUp(lookUp.name)
        while case .failure(.temporaryFailure) = result, HostClock.now() + Self.pause < lookUp.deadline,
            state.withLock({ $0.wanted.contains(lookUp.id) })
        {
            var time = timespec(tv_sec: Int(Self.pause.nanoseconds / 1_000_000_000), tv_nsec: 0)
            // The pointers live for the call; an interrupted pause is a shorter one.
            unsafe nanosleep(&time, nil)
            result = Self.lookUp(lookUp.name)
        }
        finish(lookUp.id, result, isRunning: true)
    }

    private func finish(_ id: UInt64, _ result: Result<[Endpoint], ResolutionFailure>, isRunning: Bool) {
        state.withLock { state in
            if isRunning { state.running -= 1 }
            if state.wanted.remove(id) != nil || !isRunning { state.finished.append(Outcome(id: id, result: result)) }
        }
        wakeUp.signal()
    }

    private static func lookUp(_ name: EndpointName) -> Result<[Endpoint], ResolutionFailure> {
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        unsafe hints.ai_protocol = Int32(IPPROTO_UDP)
        var list: UnsafeMutablePointer<addrinfo>?
        // The strings and hints live for the call; what it allocates is freed below.
        let error = unsafe getaddrinfo(name.host, String(name.port), &hints, &list)
        defer { if let list = unsafe list { unsafe freeaddrinfo(list) } }
        switch error {
        case 0: break
        case EAI_NONAME, noData: return .failure(.noSuchName)
        default: return .failure(.temporaryFailure)
        }
        var endpoints: [Endpoint] = []
        var next = unsafe list
        while let entry = unsafe next {
            // The entry and its address belong to the list, which is alive; the length says how much there is of the address.
            if let address = unsafe entry.pointee.ai_addr {
                let bytes = unsafe RawSpan(_unsafeStart: address, byteCount: Int(entry.pointee.ai_addrlen))
                if let endpoint = SocketAddress.read(bytes) { endpoints.append(endpoint) }
            }
            unsafe next = entry.pointee.ai_next
        }
        return endpoints.isEmpty ? .failure(.noSuchName) : .success(endpoints)
    }
}
