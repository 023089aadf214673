import IPPacket
import PacketTunnel
import Provider
import TestSupport
import Testing
import WireGuard

@Suite("Reloading a packet tunnel")
struct ReloadTests {
    private let before = tunnel(peer(1, at: "one.example"), peer(2, at: "192.0.2.2", keepalive: 25), peer(3, at: nil))

    private func connected() -> Rig {
        var rig = Rig()
        rig.handle(.pathChanged(wiFi))
        rig.bringUp(before, names: [name("one.example"): endpoint(1)])
        return rig
    }

    @Test("The same configuration touches nothing")
    func same() {
        var rig = connected()
        #expect(
            rig.handle(.reload(request(2, before))) == [
                .completeReload(RequestID(rawValue: 2), .success(ReloadSummary()))
            ])
    }

    @Test("What is different is changed, and nothing else is looked up, opened or applied")
    func difference() throws {
        var rig = connected()
        var after = before
        after.peers[1].persistentKeepaliveSeconds = nil
        after.peers[2].presharedKey = secret(9)
        after.peers[0].allowedIPs = [prefix("10.8.0.1/32"), prefix("10.8.0.3/32")]
        after.peers[2].allowedIPs = [prefix("10.8.0.2/32"), prefix("10.8.0.1/32")]
        after.peers[1].allowedIPs = []
        let actions = rig.handle(.reload(request(2, after)))
        // Everything stays routed but nothing is new to the settings: the union of the prefixes is the same.
        #expect(
            actions.changes == [
                .setPersistentKeepalive(nil, of: key(2)), .setPresharedKey(secret(9), of: key(3)),
                .addAllowedIP(prefix("10.8.0.3/32"), for: key(1)), .addAllowedIP(prefix("10.8.0.2/32"), for: key(3)),
                .addAllowedIP(prefix("10.8.0.1/32"), for: key(3)),
            ])
        var summary = ReloadSummary()
        summary.changedPeers = 3
        #expect(actions.reloads.first?.1 == .success(summary))
        #expect(actions.count == 2)
        #expect(rig.handle(.reload(request(3, after))).changes.isEmpty)
    }

    @Test("Names are looked up when the written name changed, and for new peers; the others stay where they are")
    func names() throws {
        var rig = connected()
        rig.handle(.endpointChanged(key(1), endpoint(50)))
        var after = before
        after.peers[1].endpoint = name("two.example")
        after.peers.append(peer(4, at: "four.example", keepalive: 5))
        after.peers.append(peer(5, at: "192.0.2.5"))
        let resolves = rig.handle(.reload(request(2, after))).resolves
        #expect(resolves.map(\.0) == [name("two.example"), name("four.example")])
        #expect(rig.handle(.resolved(resolves[1].1, .success([endpoint(4)]))).isEmpty)
        var actions = rig.handle(.resolved(resolves[0].1, .success([endpoint(22)])))
        let (settings, application) = try #require(actions.applies.first)
        #expect(actions.count == 1 && settings == PacketTunnelNetworkSettings(after))
        actions = rig.handle(.settingsApplied(application, nil))
        #expect(
            actions.changes == [
                .setEndpoint(endpoint(22), of: key(2)), .addPeer(key(4)), .setEndpoint(endpoint(4), of: key(4)),
                .setPersistentKeepalive(5, of: key(4)), .addPeer(key(5)), .setEndpoint(endpoint(5), of: key(5)),
                .addAllowedIP(prefix("10.8.0.4/32"), for: key(4)), .addAllowedIP(prefix("10.8.0.5/32"), for: key(5)),
            ])
        #expect(rig.provider.currentStatus.peers.first?.endpoint == endpoint(50))
    }

    @Test("A name that a live peer has is not looked up, even for another peer")
    func sharedName() throws {
        var rig = connected()
        var after = before
        after.peers.append(peer(4, at: "one.example"))
        let actions = rig.handle(.reload(request(2, after)))
        #expect(actions.resolves.isEmpty)
        let application = try #require(actions.applies.first?.1)
        #expect(
            rig.handle(.settingsApplied(application, nil)).changes.contains(.setEndpoint(endpoint(1), of: key(4))))
    }

    @Test("A removed peer takes its prefixes along, and one that gets them is given them after that")
    func removal() throws {
        var rig = connected()
        var after = before
        after.peers.remove(at: 0)
        after.peers[0].allowedIPs.append(prefix("10.8.0.1/32"))
        let actions = rig.handle(.reload(request(2, after)))
        #expect(
            actions.changes == [.removePeer(key(1)), .addAllowedIP(prefix("10.8.0.1/32"), for: key(2))])
        var summary = ReloadSummary()
        summary.removedPeers = 1
        summary.changedPeers = 1
        #expect(actions.reloads.first?.1 == .success(summary))
        #expect(rig.provider.currentStatus.peers.map(\.publicKey) == [key(2), key(3)])
    }

    @Test("A prefix that a removed peer had from another one goes back to that one")
    func sharedPrefix() {
        var rig = Rig()
        var configuration = tunnel(peer(1, at: nil), peer(2, at: nil))
        configuration.peers[1].allowedIPs.append(prefix("10.8.0.1/32"))
        rig.bringUp(configuration)
        configuration.peers[1].allowedIPs = []
        configuration.peers.remove(at: 1)
        let id = rig.handle(.reload(request(2, configuration))).applies.first?.1
        let actions = id.map { rig.handle(.settingsApplied($0, nil)) } ?? []
        #expect(actions.changes == [.removePeer(key(2)), .addAllowedIP(prefix("10.8.0.1/32"), for: key(1))])
    }

    @Test("Another port opens sockets before anything else is touched; when that fails, nothing is")
    func sockets() throws {
        var rig = connected()
        var after = before
        after.listenPort = 7000
        after.privateKey = secret(7)
        var (options, id) = try #require(rig.handle(.reload(request(2, after))).opens.first)
        #expect(options.port == 7000)
        #expect(
            rig.handle(.socketsOpened(id, .portInUse)) == [
                .completeReload(RequestID(rawValue: 2), .failure(.sockets(.portInUse)))
            ])
        // Late is another matter: the host may have them open by then, so that it is told which it should have.
        rig.handle(.reload(request(3, after)))
        let actions = rig.advance(.seconds(26))
        #expect(actions.opens.map(\.0.port) == [0])
        #expect(actions.reloads.first?.1 == .failure(.sockets(.late)))
        (options, id) = try #require(rig.handle(.reload(request(4, after))).opens.first)
        let done = rig.handle(.socketsOpened(id, nil))
        #expect(done.changes == [.setPrivateKey(secret(7))])
        #expect(done.reloads.count == 1)
    }

    @Test("A name without an address changes nothing")
    func unresolved() throws {
        var rig = connected()
        let status = rig.provider.currentStatus
        var after = before
        after.listenPort = 7000
        after.peers.append(peer(4, at: "four.example"))
        let id = try #require(rig.handle(.reload(request(2, after))).resolves.first?.1)
        #expect(
            rig.handle(.resolved(id, .failure(.noSuchName))) == [
                .completeReload(RequestID(rawValue: 2), .failure(.resolution(name("four.example"), .noSuchName)))
            ])
        #expect(rig.provider.currentStatus == status)
    }

    @Test("A configuration that contradicts itself changes nothing")
    func invalid() {
        var rig = connected()
        let after = tunnel(peer(1, at: nil), peer(1, at: nil))
        #expect(
            rig.handle(.reload(request(2, after))) == [
                .completeReload(
                    RequestID(rawValue: 2), .failure(.invalidConfiguration(.duplicatePeer(first: 0, second: 1))))
            ])
        #expect(
            rig.handle(.reload(request(3, before, DeviceOverrides(name: "sluice9")))) == [
                .completeReload(RequestID(rawValue: 3), .failure(.invalidConfiguration(.changedInterfaceName)))
            ])
        #expect(rig.status == .connected)
    }

    @Test("Settings that fail or are late are put back, with the sockets, and the device is not touched")
    func rollback() throws {
        for isLate in [false, true] {
            var rig = connected()
            var after = before
            after.mtu = 1400
            after.listenPort = 7000
            let sockets = try #require(rig.handle(.reload(request(2, after))).opens.first?.1)
            let application = try #require(rig.handle(.socketsOpened(sockets, nil)).applies.first?.1)
            var actions =
                isLate
                ? rig.advance(Reference.settingsAreLate)
                : rig.handle(.settingsApplied(application, .networkSettingsFailed))
            let (restored, id) = try #require(actions.applies.first)
            #expect(actions.count == 1 && restored == PacketTunnelNetworkSettings(before))
            actions = rig.handle(.settingsApplied(id, nil))
            #expect(actions.opens.map(\.0.port) == [0])
            #expect(
                actions.last
                    == .completeReload(
                        RequestID(rawValue: 2),
                        .failure(.settings(isLate ? .late : .refused(.networkSettingsFailed)))))
            #expect(actions.changes.isEmpty && actions.count == 2)
            #expect(rig.status == .connected)
            #expect(rig.provider.currentStatus.settings == PacketTunnelNetworkSettings(before))
        }
    }

    @Test("When the settings before cannot be restored either, the tunnel ends")
    func lost() throws {
        var rig = connected()
        var after = before
        after.mtu = 1400
        let first = try #require(rig.handle(.reload(request(2, after))).applies.first?.1)
        let second = try #require(rig.handle(.settingsApplied(first, .networkSettingsFailed)).applies.first?.1)
        let actions = rig.handle(.settingsApplied(second, .networkSettingsFailed))
        #expect(actions.reloads.first?.1 == .failure(.settings(.refused(.networkSettingsFailed))))
        let (cleared, third) = try #require(actions.applies.first)
        #expect(cleared == nil)
        #expect(rig.handle(.settingsApplied(third, nil)) == [.cancelTunnel(.settingsNotRestored)])
        #expect(rig.reason == .failed(.provider(.settingsNotRestored)))
    }

    @Test("One reload at a time: the last that waits is next, and one before it is told so")
    func queue() throws {
        var rig = connected()
        var first = before
        first.mtu = 1400
        var third = before
        third.mtu = 1300
        let id = try #require(rig.handle(.reload(request(2, first))).applies.first?.1)
        #expect(rig.handle(.reload(request(3, before))).isEmpty)
        #expect(
            rig.handle(.reload(request(4, third))) == [
                .completeReload(RequestID(rawValue: 3), .failure(.superseded))
            ])
        let actions = rig.handle(.settingsApplied(id, nil))
        #expect(actions.reloads.map(\.0.rawValue) == [2])
        #expect(actions.applies.first?.0?.mtu == 1300)
    }

    @Test("A reload waits for a start to end, and for a path")
    func waiting() throws {
        var rig = Rig()
        rig.handle(.start(request(1, before)))
        #expect(rig.handle(.reload(request(2, tunnel()))).isEmpty)
        rig.handle(.stop(.userInitiated))
        rig = connected()
        rig.handle(.pathChanged(.none))
        rig.advance(.seconds(30))
        var after = before
        after.peers.append(peer(4, at: "four.example"))
        #expect(rig.handle(.reload(request(2, after))).isEmpty)
        let first = try #require(rig.handle(.pathChanged(wiFi)).resolves.first)
        #expect(first.0 == name("one.example"))
        let second = try #require(rig.handle(.resolved(first.1, .success([endpoint(1)]))).resolves.first)
        #expect(second.0 == name("four.example"))
    }

    @Test("A tunnel that is not running is not reloaded")
    func notRunning() {
        var rig = Rig()
        #expect(
            rig.handle(.reload(request(2, before))) == [
                .completeReload(RequestID(rawValue: 2), .failure(.notRunning))
            ])
    }
}
