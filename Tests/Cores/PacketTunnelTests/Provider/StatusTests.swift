import IPPacket
import PacketTunnel
import Provider
import Testing
import WireGuard

@Suite("Status and long polls")
struct StatusTests {
    private func id(_ number: UInt64) -> AppMessageID { AppMessageID(rawValue: number) }

    private func ask(_ number: UInt64, after revision: UInt64?, seconds: UInt64 = 30) -> TunnelEvent {
        .appMessage(id(number), .status(after: revision, timeLimit: .seconds(seconds)))
    }

    @Test("A request is held until the state changes, and is answered once, with the new state")
    func change() throws {
        var rig = Rig()
        let revision = rig.provider.currentStatus.revision
        #expect(rig.handle(ask(1, after: revision)).isEmpty)
        let actions = rig.handle(.start(request(1, tunnel(peer(1, at: "vpn.example")))))
        #expect(actions.replies.map(\.0) == [id(1)])
        guard case .status(let status) = actions.replies.first?.1 else { return #expect(Bool(false)) }
        #expect(status.status == .connecting && status.reason == .resolvingEndpoints)
        #expect(status.revision > revision)
        #expect(rig.handle(.stop(.none)).replies.isEmpty)
    }

    @Test("At its time limit a request is answered with the state as it was")
    func timeLimit() {
        var rig = Rig()
        let status = rig.provider.currentStatus
        rig.handle(ask(1, after: status.revision, seconds: 30))
        #expect(rig.advance(.milliseconds(29_999)).isEmpty)
        #expect(rig.advance(.milliseconds(1)) == [.reply(id(1), .status(status))])
        #expect(rig.provider.nextDeadline == nil)
    }

    @Test("Who left gets nothing; who is one too many is told so")
    func refusals() {
        var rig = Rig()
        let revision = rig.provider.currentStatus.revision
        for number in 0..<64 as Range<UInt64> { #expect(rig.handle(ask(number, after: revision)).isEmpty) }
        #expect(rig.handle(ask(64, after: revision)) == [.reply(id(64), .tooManyAskers)])
        rig.handle(.appLeft(id(3)))
        #expect(rig.handle(.memoryUsed(1), .sleep).replies.map(\.0.rawValue) == (0..<64).filter { $0 != 3 })
    }

    @Test("States wake who waits; what is only counted does not")
    func whatCounts() {
        var rig = Rig(memoryLimit: 1000)
        rig.handle(.pathChanged(wiFi))
        rig.bringUp(tunnel(peer(1, at: "192.0.2.1")))
        var number: UInt64 = 0
        func wakes(_ events: TunnelEvent...) -> Bool {
            number += 1
            rig.handle(ask(number, after: rig.provider.currentStatus.revision))
            var replies = 0
            for event in events { replies += rig.handle(event).replies.count }
            rig.handle(.appLeft(id(number)))
            return replies == 1
        }
        #expect(wakes(.handshakeCompleted(key(1))))
        #expect(!wakes(.handshakeCompleted(key(1))), "every two minutes is too often")
        #expect(wakes(.handshakeGivenUp(key(1))))
        #expect(!wakes(.handshakeGivenUp(key(1))))
        #expect(wakes(.endpointChanged(key(1), endpoint(2))))
        #expect(!wakes(.endpointChanged(key(1), endpoint(2))))
        #expect(!wakes(.endpointChanged(key(9), endpoint(2))), "a peer that the tunnel does not have")
        #expect(!wakes(.memoryUsed(500)))
        #expect(wakes(.memoryUsed(900)))
        #expect(!wakes(.memoryUsed(901)))
        #expect(!wakes(.pathChanged(cellular)))
        #expect(wakes(.pathChanged(.none)))
        #expect(wakes(.pathChanged(wiFi)))
        #expect(wakes(.sleep))
        #expect(wakes(.wake))
        #expect(!wakes(.reload(request(2, tunnel(peer(1, at: "192.0.2.1"))))), "nothing changed")
        #expect(wakes(.reload(request(3, tunnel(peer(1, at: "192.0.2.1", keepalive: 25))))))
        #expect(wakes(.stop(.userInitiated)))
    }

    @Test("A status says what is known of the tunnel and its peers")
    func content() {
        var rig = Rig()
        var configuration = tunnel(peer(1, at: "vpn.example", keepalive: 25), peer(2, at: nil))
        configuration.dnsServers = [v4(10, 8, 0, 1)]
        rig.bringUp(configuration, names: [name("vpn.example"): endpoint(1)])
        rig.handle(.handshakeCompleted(key(1)), .endpointChanged(key(2), endpoint(2)))
        let status = rig.provider.currentStatus
        #expect(status.settings == PacketTunnelNetworkSettings(configuration))
        #expect(status.peers.map(\.publicKey) == [key(1), key(2)])
        #expect(status.peers.map(\.endpointName) == [name("vpn.example"), nil])
        #expect(status.peers.map(\.endpoint) == [endpoint(1), endpoint(2)])
        #expect(status.peers.map(\.handshake) == [.completed, .none])
        #expect(status.peers.map(\.persistentKeepaliveSeconds) == [25, nil])
        #expect(status.peers.map(\.allowedIPs) == configuration.peers.map(\.allowedIPs))
    }

    @Test("Memory that runs short is shed once at each level, and told of as it gets better")
    func memory() {
        var rig = Rig(memoryLimit: 1000)
        #expect(rig.handle(.memoryUsed(700)).isEmpty)
        #expect(rig.handle(.memoryUsed(750)) == [.shed(MemoryLevel.warning.shedding)])
        #expect(rig.handle(.memoryUsed(760)).isEmpty)
        #expect(rig.handle(.memoryUsed(990)) == [.shed(MemoryLevel.critical.shedding)])
        #expect(rig.handle(.memoryUsed(100)) == [.shed([])])
        var unlimited = Rig()
        #expect(unlimited.handle(.memoryUsed(.max)).isEmpty)
    }

    @Test("No key is in a log line, and no type that holds one has a text")
    func keys() {
        #expect(!(SecretKey.self is any CustomStringConvertible.Type))
        #expect(!(PublicKey.self is any CustomStringConvertible.Type))
        #expect(!(TunnelConfiguration.self is any CustomStringConvertible.Type))
        #expect(!(PeerConfiguration.self is any CustomStringConvertible.Type))
        #expect(!(DeviceChange.self is any CustomStringConvertible.Type))
    }

    @Test("Names and addresses in log lines are private")
    func logPrivacy() throws {
        var provider = PacketTunnelProvider()
        var now = Instant(nanoseconds: 1)
        var lines: [LogMessage] = []
        func take(_ actions: [Action]) -> [Action] {
            for case .log(_, let message) in actions { lines.append(message) }
            return actions
        }
        let actions = take(provider.handle(.start(request(1, tunnel(peer(1, at: "secret.example")))), at: now))
        let id = try #require(actions.resolves.first?.1)
        now = now + .seconds(1)
        _ = take(provider.handle(.resolved(id, .failure(.noSuchName)), at: now))
        #expect(lines.contains { $0.text(with: LogPrivacy(showPrivate: true)).contains("secret.example") })
        #expect(!lines.contains { $0.text.contains("secret") })
        let hashed = lines.map { $0.text(with: LogPrivacy(hashKey: SipHashKey(1, 2))) }
        #expect(hashed.contains { $0.contains(/<private [0-9a-f]{8}>/) })
    }
}
