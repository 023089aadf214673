import ByteAccess
import IPPacket
import PacketTunnel
import Provider
import TestSupport
import Testing
import WireGuard

typealias Action = PacketTunnelProvider.Action
typealias TunnelEvent = PacketTunnelProvider.Event
typealias OperationID = PacketTunnelProvider.OperationID
typealias Request = PacketTunnelProvider.Request
typealias RequestID = PacketTunnelProvider.RequestID

/// What the reference says, written down apart from the code.
enum Reference {
    static let pathGrace = Interval.seconds(12)
    static let settingsAreLate = Interval.seconds(5)
    static let overhead = 80
    static let rejectAfterTime = Interval.seconds(180)
    static let rekeyAfterTime = Interval.seconds(120)
    /// Apple's resolvers take about 26 s by themselves: a bound has to be shorter to be of use.
    static let resolverByItself = Interval.seconds(26)
}

/// A provider whose host is the test: it says what happens, and looks at what is asked for.
struct Rig {
    var provider: PacketTunnelProvider
    var now = Instant(nanoseconds: 1_000_000_000_000)
    private var hasReported = false

    init(
        remembered: [EndpointName: Endpoint] = [:], memoryLimit: UInt64? = nil,
        timings: TunnelTimings = TunnelTimings()
    ) {
        provider = PacketTunnelProvider(
            rememberedEndpoints: remembered, memoryLimit: memoryLimit, timings: timings)
    }

    var status: VPNStatus { provider.status }
    var reason: StatusReason? { provider.currentStatus.reason }

    /// Lets something happen. Returns what is asked for, without log lines.
    @discardableResult
    mutating func handle(_ events: TunnelEvent...) -> [Action] {
        handle(events)
    }

    /// Lets several things happen at one moment.
    @discardableResult
    mutating func handle(_ events: [TunnelEvent]) -> [Action] {
        let actions = provider.handle(events, at: now)
        return checked(actions)
    }

    /// Lets time pass, stopping at every deadline. Returns what is asked for meanwhile.
    @discardableResult
    mutating func advance(_ interval: Interval) -> [Action] {
        let end = now + interval
        var actions: [Action] = []
        while let deadline = provider.nextDeadline, deadline <= end {
            now = max(now, deadline)
            let due = provider.handleDeadlines(at: now)
            actions += checked(due)
            // What was said about it above; time must pass all the same.
            if provider.nextDeadline == deadline { break }
        }
        now = end
        return actions
    }

    /// Moves the clock without asking the provider anything: nobody was there to.
    mutating func skip(_ interval: Interval) {
        now = now + interval
    }

    private mutating func checked(_ actions: [Action]) -> [Action] {
        // Cheaper than an expectation each time: this is done millions of times.
        if let deadline = provider.nextDeadline, deadline <= now, !hasReported {
            hasReported = true
            Issue.record("a deadline survived being handled")
        }
        return actions.filter { if case .log = $0 { false } else { true } }
    }

    /// Brings a tunnel up: names lead to what `names` says, everything else succeeds.
    @discardableResult
    mutating func bringUp(_ configuration: TunnelConfiguration, names: [EndpointName: Endpoint] = [:]) -> [Action] {
        var actions = handle(.start(request(1, configuration)))
        var all = actions
        while let answer = success(for: actions, names: names) {
            actions = handle(answer)
            all += actions
        }
        #expect(status == .connected)
        return all
    }

    /// What a host without trouble answers to the first thing in `actions` that wants an answer; the others of a kind are done
    /// by asking again.
    private func success(for actions: [Action], names: [EndpointName: Endpoint]) -> TunnelEvent? {
        for action in actions {
            switch action {
            case .openSockets(_, let id): return .socketsOpened(id, nil)
            case .apply(_, let id): return .settingsApplied(id, nil)
            case .resolve: break
            default: break
            }
        }
        guard let (name, id, _) = actions.resolves.first else { return nil }
        precondition(actions.resolves.count == 1, "one name at a time")
        return .resolved(id, names[name].map { .success([$0]) } ?? .failure(.noSuchName))
    }
}

func request(_ id: UInt64, _ configuration: TunnelConfiguration, _ overrides: DeviceOverrides = DeviceOverrides())
    -> Request
{
    Request(id: RequestID(rawValue: id), configuration: configuration, overrides: overrides)
}

extension [Action] {
    var resolves: [(EndpointName, OperationID, Instant)] {
        compactMap { if case .resolve(let name, let id, let deadline) = $0 { (name, id, deadline) } else { nil } }
    }
    var applies: [(PacketTunnelNetworkSettings?, OperationID)] {
        compactMap { if case .apply(let settings, let id) = $0 { (settings, id) } else { nil } }
    }
    var opens: [(PacketTunnelProvider.SocketOptions, OperationID)] {
        compactMap { if case .openSockets(let options, let id) = $0 { (options, id) } else { nil } }
    }
    var remaps: [(IPAddress, OperationID)] {
        compactMap { if case .remap(let address, let id) = $0 { (address, id) } else { nil } }
    }
    var changes: [DeviceChange] {
        flatMap { if case .configure(let changes) = $0 { changes } else { [] as [DeviceChange] } }
    }
    var replies: [(AppMessageID, PacketTunnelProvider.AppMessageReply)] {
        compactMap { if case .reply(let id, let reply) = $0 { (id, reply) } else { nil } }
    }
    var starts: [(RequestID, TunnelFailure?)] {
        compactMap { if case .completeStart(let id, let failure) = $0 { (id, failure) } else { nil } }
    }
    var reloads: [(RequestID, Result<ReloadSummary, TunnelFailure>)] {
        compactMap { if case .completeReload(let id, let result) = $0 { (id, result) } else { nil } }
    }
    var stops: Int { count { if case .completeStop = $0 { true } else { false } } }
    var reassertings: [Bool] { compactMap { if case .setReasserting(let value) = $0 { value } else { nil } } }
}

// MARK: Values

func v4(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) -> IPAddress { .v4(IPv4Address(a, b, c, d)) }

func v6(_ text: String) -> IPAddress {
    do { return try IPAddress(parsing: text) } catch { fatalError("not an address: \(text)") }
}

func prefix(_ text: String) -> IPPrefix {
    do { return try IPPrefix(parsing: text) } catch { fatalError("not a prefix: \(text)") }
}

func interfaceAddress(_ text: String) -> InterfaceAddress {
    do { return try InterfaceAddress(parsing: text) } catch { fatalError("not an address: \(text)") }
}

func key(_ number: UInt8) -> PublicKey { PublicKey([UInt8](repeating: number, count: 32).span.octets) }

func secret(_ number: UInt8) -> SecretKey {
    SecretKey(SecretMemory(copying: [UInt8](repeating: number, count: 32).span.octets))
}

/// The endpoint 192.0.2.n, port 51820.
func endpoint(_ number: UInt8) -> Endpoint { Endpoint(address: v4(192, 0, 2, number), port: 51_820) }

func name(_ host: String) -> EndpointName { EndpointName(host: host, port: 51_820) }

/// A peer at an endpoint with the inner address 10.8.0.n.
func peer(_ number: UInt8, at host: String?, keepalive: UInt16? = nil) -> PeerConfiguration {
    var peer = PeerConfiguration(publicKey: key(number))
    peer.endpoint = host.map { name($0) }
    peer.allowedIPs = [prefix("10.8.0.\(number)/32")]
    peer.persistentKeepaliveSeconds = keepalive
    return peer
}

func tunnel(_ peers: PeerConfiguration...) -> TunnelConfiguration {
    var configuration = TunnelConfiguration()
    configuration.privateKey = secret(200)
    configuration.addresses = [interfaceAddress("10.8.0.100/24")]
    configuration.peers = peers
    return configuration
}

let wiFi = NetworkPath(
    interfaceIndex: 2, interfaceName: "wlan0", addresses: [v4(198, 51, 100, 7)], gateways: [v4(198, 51, 100, 1)],
    supportsIPv6: false)
let cellular = NetworkPath(
    interfaceIndex: 3, interfaceName: "wwan0", addresses: [v4(203, 0, 113, 9)], gateways: [v4(203, 0, 113, 1)],
    supportsIPv6: false)
let cellularIPv6 = NetworkPath(
    interfaceIndex: 3, interfaceName: "wwan0", addresses: [v6("2001:db8::9")], gateways: [v6("fe80::1")],
    supportsIPv4: false)
