import IPPacket
import PacketTunnel
import Provider
import Testing
import WireGuard

@Suite("Following the path to the network")
struct PathTests {
    /// A tunnel to a named peer over Wi-Fi, with a session.
    private func connected(at host: String = "vpn.example", extra: PeerConfiguration...) -> Rig {
        var rig = Rig()
        rig.handle(.pathChanged(wiFi))
        var configuration = tunnel(peer(1, at: host))
        configuration.peers += extra
        rig.bringUp(configuration, names: [name("vpn.example"): endpoint(1)])
        rig.handle(.handshakeCompleted(key(1)))
        return rig
    }

    @Test("A path that is lost for less than 12 s and comes back changes nothing")
    func shortLoss() {
        var rig = connected()
        #expect(rig.handle(.pathChanged(.none)).isEmpty)
        #expect(rig.status == .connected && rig.reason == .pathLost)
        #expect(rig.provider.nextDeadline == rig.now + Reference.pathGrace)
        #expect(rig.advance(.milliseconds(11_999)).isEmpty)
        #expect(rig.handle(.pathChanged(wiFi)).isEmpty)
        #expect(rig.reason == nil && rig.provider.nextDeadline == nil)
    }

    @Test("A path that comes back as another within 12 s is followed, with nothing looked up")
    func shortLossAndRoam() {
        var rig = connected()
        rig.handle(.pathChanged(.none))
        rig.advance(.seconds(5))
        #expect(rig.handle(.pathChanged(cellular)) == [.rebindSockets, .sendKeepalives([key(1)])])
        #expect(rig.status == .connected)
    }

    @Test("A path that is lost for 12 s suspends the tunnel: it reasserts, its settings stay, its link is down")
    func longLoss() {
        var rig = connected()
        let settings = rig.provider.currentStatus.settings
        rig.handle(.pathChanged(.none))
        #expect(rig.advance(Reference.pathGrace) == [.setReasserting(true), .configure([.setLink(up: false)])])
        #expect(rig.status == .reasserting && rig.reason == .pathLost)
        #expect(rig.provider.nextDeadline == nil, "it waits for a path, not for a time")
        #expect(rig.provider.currentStatus.settings == settings && settings != nil)
        #expect(rig.advance(.seconds(86_400)).isEmpty)
    }

    @Test("After a suspension names are looked up again, and a peer that moved is found")
    func resumption() throws {
        var rig = connected()
        rig.handle(.pathChanged(.none))
        rig.advance(.seconds(30))
        var actions = rig.handle(.pathChanged(cellular))
        let (asked, id, _) = try #require(actions.resolves.first)
        #expect(actions.count == 1 && asked == name("vpn.example"))
        #expect(rig.status == .reasserting && rig.reason == .resolvingEndpoints)
        actions = rig.handle(.resolved(id, .success([endpoint(7)])))
        #expect(
            actions == [
                .rebindSockets, .configure([.setEndpoint(endpoint(7), of: key(1)), .setLink(up: true)]),
                .setReasserting(false), .initiateHandshakes([key(1)]),
            ])
        #expect(rig.status == .connected && rig.reason == nil)
    }

    @Test("After a suspension all names lead somewhere or no peer moves", arguments: [true, false])
    func allOrNothing(answers: Bool) throws {
        var rig = connected(extra: peer(2, at: "192.0.2.2"), peer(3, at: "192.0.2.3"))
        // A second name, learned by a reload.
        var configuration = tunnel(peer(1, at: "vpn.example"), peer(2, at: "two.example"), peer(3, at: "192.0.2.3"))
        configuration.listenPort = 0
        let two = try #require(rig.handle(.reload(request(2, configuration))).resolves.first?.1)
        rig.handle(.resolved(two, .success([endpoint(2)])))
        rig.handle(.pathChanged(.none))
        rig.advance(.seconds(30))
        let resolves = rig.handle(.pathChanged(wiFi)).resolves
        #expect(resolves.map(\.0) == [name("vpn.example"), name("two.example")])
        rig.handle(.resolved(resolves[0].1, .success([endpoint(77)])))
        let actions =
            answers
            ? rig.handle(.resolved(resolves[1].1, .failure(.temporaryFailure)))
            : rig.advance(Reference.resolverByItself)
        #expect(actions.changes == [.setLink(up: true)])
        #expect(actions.reassertings == [false])
        #expect(rig.status == .connected)
    }

    @Test("A peer stays at its address while that is one of its name's")
    func multipleAddresses() throws {
        var rig = connected()
        rig.handle(.pathChanged(.none))
        rig.advance(.seconds(30))
        let id = try #require(rig.handle(.pathChanged(wiFi)).resolves.first?.1)
        let actions = rig.handle(.resolved(id, .success([endpoint(8), endpoint(1)])))
        #expect(actions.changes == [.setLink(up: true)])
    }

    @Test("A path that is lost while names are looked up gives that up, and the next one begins anew")
    func lossWhileResuming() throws {
        var rig = connected()
        rig.handle(.pathChanged(.none))
        rig.advance(.seconds(30))
        let first = try #require(rig.handle(.pathChanged(wiFi)).resolves.first?.1)
        #expect(rig.handle(.pathChanged(.none)) == [.cancelResolve(first)])
        #expect(rig.handle(.resolved(first, .success([endpoint(3)]))).isEmpty)
        let second = try #require(rig.handle(.pathChanged(wiFi)).resolves.first?.1)
        #expect(second != first)
        #expect(rig.handle(.resolved(second, .success([endpoint(1)]))).reassertings == [false])
    }

    @Test("A tunnel to numbers is resumed at once")
    func resumptionWithoutNames() {
        var rig = connected(at: "192.0.2.1")
        rig.handle(.pathChanged(.none))
        rig.advance(.seconds(30))
        #expect(
            rig.handle(.pathChanged(wiFi)) == [
                .rebindSockets, .configure([.setLink(up: true)]), .setReasserting(false),
                .initiateHandshakes([key(1)]),
            ])
    }

    @Test("A change of interface, address or router is followed; the same path told twice is not a change")
    func changes() {
        var address = wiFi
        address.addresses = [v4(198, 51, 100, 8)]
        var router = address
        router.gateways = [v4(198, 51, 100, 254)]
        var rig = connected()
        for path in [address, router, cellular, wiFi] {
            #expect(rig.handle(.pathChanged(path)) == [.rebindSockets, .sendKeepalives([key(1)])])
            #expect(rig.handle(.pathChanged(path)).isEmpty)
        }
    }

    @Test("Only peers with a session are greeted after a change")
    func greeting() {
        var rig = connected(extra: peer(2, at: "192.0.2.2"))
        rig.skip(Reference.rejectAfterTime)
        #expect(rig.handle(.pathChanged(cellular)) == [.rebindSockets])
        rig.handle(.handshakeCompleted(key(2)))
        rig.skip(.seconds(179))
        #expect(rig.handle(.pathChanged(wiFi)) == [.rebindSockets, .sendKeepalives([key(2)])])
    }

    @Test("A tunnel that comes up without a path has 12 s as well, and is followed then")
    func startWithoutPath() {
        var rig = Rig()
        rig.handle(.pathChanged(.none))
        #expect(rig.bringUp(tunnel(peer(1, at: "192.0.2.1"))).reassertings.isEmpty)
        #expect(rig.provider.nextDeadline == rig.now + Reference.pathGrace)
        #expect(rig.handle(.pathChanged(wiFi)) == [.rebindSockets])
        #expect(rig.reason == nil)
    }

    // MARK: NAT64

    @Test("In a network that has only IPv6 the current address, not the name, is translated, and the peer keeps it")
    func translation() throws {
        var rig = connected()
        rig.handle(.endpointChanged(key(1), endpoint(5)))
        var actions = rig.handle(.pathChanged(cellularIPv6))
        let (address, id) = try #require(actions.remaps.first)
        #expect(address == endpoint(5).address, "where the peer is now")
        #expect(actions == [.rebindSockets, .remap(address, id)])
        let mapped = Endpoint(address: v6("64:ff9b::c000:205"), port: 51_820)
        actions = rig.handle(.remapped(id, mapped.address))
        #expect(actions == [.configure([.setEndpoint(mapped, of: key(1))]), .sendKeepalives([key(1)])])
        #expect(rig.provider.currentStatus.peers.first?.endpoint == mapped)
        // Another IPv6 network translates the same address afresh.
        var second = cellularIPv6
        second.interfaceIndex = 9
        let again = try #require(rig.handle(.pathChanged(second)).remaps.first)
        #expect(again.0 == endpoint(5).address)
        let other = Endpoint(address: v6("2001:db8:64::c000:205"), port: 51_820)
        #expect(rig.handle(.remapped(again.1, other.address)).changes == [.setEndpoint(other, of: key(1))])
        // Back in a network with IPv4 the address is itself.
        #expect(
            rig.handle(.pathChanged(wiFi)) == [
                .rebindSockets, .configure([.setEndpoint(endpoint(5), of: key(1))]), .sendKeepalives([key(1)]),
            ])
    }

    @Test("A translation that does not come is given up, and an outdated one is ignored", arguments: [true, false])
    func noTranslation(answers: Bool) throws {
        var rig = connected()
        let first = try #require(rig.handle(.pathChanged(cellularIPv6)).remaps.first?.1)
        var second = cellularIPv6
        second.interfaceIndex = 9
        let id = try #require(rig.handle(.pathChanged(second)).remaps.first?.1)
        #expect(rig.handle(.remapped(first, v6("64:ff9b::1"))).isEmpty)
        let actions = answers ? rig.handle(.remapped(id, nil)) : rig.advance(.seconds(26))
        #expect(actions == [.sendKeepalives([key(1)])])
        #expect(rig.provider.nextDeadline == nil)
        #expect(rig.provider.currentStatus.peers.first?.endpoint == endpoint(1))
    }

    @Test("A resumption in a network that has only IPv6 greets peers when they can be reached")
    func translationAfterSuspension() throws {
        var rig = connected(at: "192.0.2.1")
        rig.handle(.pathChanged(.none))
        rig.advance(.seconds(1000))
        var actions = rig.handle(.pathChanged(cellularIPv6))
        #expect(!actions.contains(.initiateHandshakes([key(1)])))
        let id = try #require(actions.remaps.first?.1)
        actions = rig.handle(.remapped(id, v6("64:ff9b::c000:201")))
        #expect(actions.last == .sendKeepalives([key(1)]))
    }

    @Test("A start in a network that has only IPv6 translates the addresses it found")
    func translationAtStart() throws {
        var rig = Rig()
        rig.handle(.pathChanged(cellularIPv6))
        let actions = rig.bringUp(tunnel(peer(1, at: "192.0.2.1"), peer(2, at: "192.0.2.1"), peer(3, at: nil)))
        #expect(actions.remaps.map(\.0) == [v4(192, 0, 2, 1)], "each address once")
        let id = try #require(actions.remaps.first?.1)
        let mapped = Endpoint(address: v6("64:ff9b::c000:201"), port: 51_820)
        #expect(
            rig.handle(.remapped(id, mapped.address)).changes == [
                .setEndpoint(mapped, of: key(1)), .setEndpoint(mapped, of: key(2)),
            ])
    }
}
