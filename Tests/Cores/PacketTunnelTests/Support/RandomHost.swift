import IPPacket
import PacketTunnel
import Provider
import TestSupport
import Testing
import WireGuard

/// A host that lets anything happen in any order, and holds the provider to its promises at every step.
struct RandomHost {
    private enum Pending {
        case name(EndpointName), sockets, settings(PacketTunnelNetworkSettings?), address
    }

    private(set) var rig = Rig(memoryLimit: 1000)
    private var generator: SeededGenerator
    private var pending: [(OperationID, Pending)] = []
    /// Operations that were answered or given up: answering them again is what a slow system does.
    private var stale: [OperationID] = []
    /// What comes in together; nil when things come in one by one.
    private var batch: [TunnelEvent]?
    /// True while what came in together is noted.
    private var isBatch = false
    private var nextRequest: UInt64 = 0
    private var nextMessage: UInt64 = 0

    // What a watcher of the actions knows.

    private var openStarts: Set<UInt64> = []
    private var openReloads: Set<UInt64> = []
    private var openMessages: Set<UInt64> = []
    private var goneMessages: Set<UInt64> = []
    private var openStops = 0
    private var wasConnected = false
    private var isReasserting = false
    private var isSuspended = false
    private var areSettingsInPlace = false
    private var areSettingsUncertain = false
    private var isLinkUp = false
    /// The names of the peers that the device has.
    private var liveNames: Set<EndpointName> = []
    private var requested: [UInt64: TunnelConfiguration] = [:]
    /// The promises that were broken.
    private(set) var broken: [String] = []
    /// How many answers to held requests there were.
    private(set) var repliesSeen = 0

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    // MARK: What happens

    /// Lets one random thing happen.
    mutating func step(onlyLifecycleAndMessages: Bool = false) {
        switch generator.below(onlyLifecycleAndMessages ? 9 : 23) {
        case 0, 1: ask()
        case 2: leave()
        case 3: start()
        case 4: stop()
        case 5, 6, 7: answer()
        case 8: advance()
        case 9: advance()
        case 10, 11: answer()
        case 12: reload()
        case 13: handle(.sleep)
        case 14: handle(.wake)
        case 15, 16: handle(.pathChanged([wiFi, cellular, cellularIPv6, .none][generator.below(4)]))
        case 17: handle(.handshakeCompleted(key(UInt8(1 + generator.below(4)))))
        case 18: handle(.handshakeGivenUp(key(UInt8(1 + generator.below(4)))))
        case 19: handle(.endpointChanged(key(UInt8(1 + generator.below(4))), endpoint(UInt8(generator.below(9)))))
        case 20: handle(.memoryUsed(UInt64(generator.below(1100))))
        case 21: handleBatch()
        default: if generator.below(8) == 0 { handle(.fail(.interfaceFailed)) } else { answerStale() }
        }
    }

    /// Ends what is under way: after this nothing is left open.
    mutating func end() {
        handle(.wake)
        stop()
        advance(.seconds(30))
        check(rig.status == .disconnected)
        check(openStarts.isEmpty && openReloads.isEmpty && openStops == 0)
        check(rig.provider.currentStatus.peers.isEmpty)
        check(!isLinkUp && liveNames.isEmpty)
        // Once more with a system that obeys, should it have resisted.
        stop()
        while let (id, wanted) = pending.first {
            pending.removeFirst()
            guard case .settings(nil) = wanted else { continue }
            (areSettingsInPlace, areSettingsUncertain) = (false, false)
            handle(.settingsApplied(id, nil))
        }
        check(!areSettingsInPlace && !areSettingsUncertain, "settings in place after a stop")
        check(openStops == 0)
        advance(.seconds(700))
        check(openMessages.isEmpty, "a request was never answered")
        check(rig.provider.nextDeadline == nil)
    }

    private mutating func configuration() -> TunnelConfiguration {
        var peers: [PeerConfiguration] = []
        for number in 1...4 as ClosedRange<UInt8> where generator.below(2) == 0 {
            let hosts = [nil, "192.0.2.\(number)", "a\(number).example", "b\(number).example"]
            peers.append(peer(number, at: hosts[generator.below(4)], keepalive: generator.below(2) == 0 ? 25 : nil))
        }
        if generator.below(20) == 0, let first = peers.first { peers.append(first) }
        var configuration = tunnel()
        configuration.peers = peers
        configuration.listenPort = UInt16(generator.below(2))
        configuration.mtu = [nil, 1400][generator.below(2)]
        return configuration
    }

    private mutating func start() {
        nextRequest += 1
        openStarts.insert(nextRequest)
        let configuration = configuration()
        requested[nextRequest] = configuration
        handle(.start(request(nextRequest, configuration)))
    }

    private mutating func reload() {
        nextRequest += 1
        openReloads.insert(nextRequest)
        let configuration = configuration()
        requested[nextRequest] = configuration
        handle(.reload(request(nextRequest, configuration)))
    }

    private mutating func stop() {
        openStops += 1
        handle(.stop(.userInitiated))
    }

    private mutating func ask() {
        nextMessage += 1
        openMessages.insert(nextMessage)
        let id = AppMessageID(rawValue: nextMessage)
        let current = rig.provider.currentStatus.revision
        let known = [nil, current, current, current, current &- 1][generator.below(5)]
        let limit = Interval.seconds([0, 1, 30, 10_000][generator.below(4)])
        handle(.appMessage(id, .status(after: known, timeLimit: limit)))
    }

    private mutating func leave() {
        guard let message = openMessages.sorted().randomElement(using: &generator) else { return }
        openMessages.remove(message)
        goneMessages.insert(message)
        handle(.appLeft(AppMessageID(rawValue: message)))
    }

    private mutating func advance() {
        advance(.milliseconds(UInt64([1, 500, 4000, 6000, 13_000, 200_000][generator.below(6)])))
    }

    private mutating func advance(_ interval: Interval) {
        // Each deadline by itself, so that what is asked for is seen before the next.
        let end = rig.now + interval
        while let deadline = rig.provider.nextDeadline, deadline <= end {
            note(rig.advance(deadline.since(rig.now)))
            if rig.provider.nextDeadline == deadline { break }
        }
        rig.skip(end.since(rig.now))
    }

    private mutating func answer() {
        guard !pending.isEmpty else { return }
        let (id, kind) = pending.remove(at: generator.below(pending.count))
        stale.append(id)
        switch kind {
        case .name:
            let count = generator.below(4)
            let found = (0..<count).map { _ in endpoint(UInt8(generator.below(9))) }
            handle(.resolved(id, generator.below(5) == 0 ? .failure(.temporaryFailure) : .success(found)))
        case .sockets:
            handle(.socketsOpened(id, generator.below(6) == 0 ? .portInUse : nil))
        case .settings(let wanted):
            let fails = generator.below(6) == 0
            if !fails {
                areSettingsInPlace = wanted != nil
                areSettingsUncertain = false
            }
            handle(.settingsApplied(id, fails ? .networkSettingsFailed : nil))
        case .address:
            handle(.remapped(id, generator.below(3) == 0 ? nil : v6("64:ff9b::\(1 + generator.below(9))")))
        }
    }

    private mutating func answerStale() {
        guard let id = stale.randomElement(using: &generator) else { return }
        let event: TunnelEvent =
            switch generator.below(4) {
            case 0: .resolved(id, .success([endpoint(1)]))
            case 1: .remapped(id, v6("64:ff9b::1"))
            case 2: .socketsOpened(id, nil)
            default: .settingsApplied(id, nil)
            }
        let before = rig.status
        handle(event)
        check(rig.status == before)
    }

    private mutating func handle(_ event: TunnelEvent) {
        if batch != nil { batch?.append(event) } else { note(rig.handle(event)) }
    }

    /// Several things come in at one moment, often a stop among them.
    private mutating func handleBatch() {
        batch = []
        for _ in 0..<generator.below(5) {
            switch generator.below(7) {
            case 0: start()
            case 1: reload()
            case 2: ask()
            case 3: stop()
            case 4: handle(.pathChanged([wiFi, cellular, .none][generator.below(3)]))
            case 5: handle(generator.below(2) == 0 ? .sleep : .wake)
            default: answer()
            }
        }
        let events = batch ?? []
        batch = nil
        isBatch = true
        note(rig.handle(events))
        isBatch = false
        // Of several stops the last ones may still wait when those before them were answered.
        let hasStop = events.contains { if case .stop = $0 { true } else { false } }
        if hasStop, rig.status == .disconnecting { openStops = max(openStops, 1) }
    }

    // MARK: What is asked for

    private mutating func check(_ condition: Bool, _ promise: String = "", line: Int = #line) {
        if !condition { broken.append("line \(line): \(promise)") }
    }

    private mutating func note(_ actions: [Action]) {
        for (position, action) in actions.enumerated() { note(action, isLast: position == actions.count - 1) }
        let status = rig.status
        if status == .connected { wasConnected = true }
        check((status == .reasserting) == isReasserting)
        check(!isReasserting || isSuspended)
        check(isLinkUp == (status == .connected), "the link is up while the tunnel is")
        if rig.status == .disconnected {
            check(!pending.contains { if case .name = $0.1 { true } else { false } }, "a name is still looked up")
            for (id, _) in pending { retire(id) }
        }
    }

    private mutating func note(_ action: Action, isLast: Bool) {
        switch action {
        case .completeStart(let id, let failure):
            check(openStarts.remove(id.rawValue) != nil, "a start is completed twice")
            if failure == nil { liveNames = names(of: id) }
        case .completeReload(let id, let result):
            check(openReloads.remove(id.rawValue) != nil, "a reload is completed twice")
            if case .success = result { liveNames = names(of: id) }
        case .completeStop:
            // Of several that come in together, each may find the tunnel down, and others may follow the last.
            check(openStops > 0 || isBatch, "nobody asked for a stop")
            check(isLast || isBatch || !openStarts.isEmpty, "something follows a stop that no start asked for")
            openStops = 0
        case .completeSleep: break
        case .cancelTunnel: check(!isLinkUp)
        case .setReasserting(let value):
            check(value != isReasserting)
            check(!value || wasConnected, "reasserting before the first connect")
            isReasserting = value
        case .resolve(let name, let id, let deadline):
            check(deadline > rig.now)
            check(name.numericEndpoint == nil, "a number was looked up")
            check(isSuspended || !liveNames.contains(name), "a live peer's name was looked up")
            pending.append((id, .name(name)))
        case .cancelResolve(let id): retire(id)
        case .remap(let address, let id):
            check(address.version == .v4)
            pending.append((id, .address))
        case .openSockets(_, let id): pending.append((id, .sockets))
        case .rebindSockets, .sendKeepalives, .initiateHandshakes:
            check(wasConnected)
        case .closeSockets: break
        case .apply(let settings, let id):
            // What was under way is not awaited any more, and may or may not have happened.
            pending.removeAll { if case .settings = $0.1 { true } else { false } }
            if settings != nil { areSettingsUncertain = true }
            pending.append((id, .settings(settings)))
        case .configure(let changes): note(changes)
        case .pauseDevice, .resumeDevice, .shed, .log: break
        case .reply(let id, _):
            repliesSeen += 1
            check(openMessages.remove(id.rawValue) != nil, "a message is answered twice, or its sender is gone")
        }
    }

    private mutating func note(_ changes: [DeviceChange]) {
        for change in changes {
            switch change {
            case .setLink(let isUp):
                check(isUp != isLinkUp || !isUp)
                isLinkUp = isUp
                if !isUp { isSuspended = true }
                if isUp {
                    wasConnected = true
                    isSuspended = false
                }
            case .removeAllPeers:
                liveNames = []
                isSuspended = false
                wasConnected = false
            default: break
            }
        }
    }

    private mutating func retire(_ id: OperationID) {
        pending.removeAll { $0.0 == id }
        stale.append(id)
    }

    private func names(of request: RequestID) -> Set<EndpointName> {
        Set(requested[request.rawValue]?.peers.compactMap(\.endpoint) ?? []).filter { $0.numericEndpoint == nil }
    }
}
