import IPPacket
import PacketTunnel
import Provider
import Testing
import WireGuard

@Suite("Starting a packet tunnel")
struct StartTests {
    @Test("Names first, then sockets, settings, the device; connected when the settings are in place")
    func order() throws {
        var rig = Rig()
        let configuration = tunnel(peer(1, at: "vpn.example"), peer(2, at: "192.0.2.2"), peer(3, at: nil))
        var actions = rig.handle(.start(request(7, configuration)))
        #expect(rig.status == .connecting && rig.reason == .resolvingEndpoints)
        // A number is not looked up, and nothing else happens before the name is.
        #expect(actions.count == 1)
        let (asked, resolution, _) = try #require(actions.resolves.first)
        #expect(asked == name("vpn.example"))

        actions = rig.handle(.resolved(resolution, .success([endpoint(9), endpoint(1)])))
        let (options, sockets) = try #require(actions.opens.first)
        #expect(actions.count == 1 && options.port == 0 && options.firewallMark == nil)
        #expect(rig.reason == .openingSockets)

        actions = rig.handle(.socketsOpened(sockets, nil))
        let (settings, application) = try #require(actions.applies.first)
        #expect(actions.count == 1 && settings == PacketTunnelNetworkSettings(configuration))
        #expect(rig.status == .connecting && rig.reason == .applyingSettings)

        actions = rig.handle(.settingsApplied(application, nil))
        #expect(rig.status == .connected && rig.reason == nil)
        let changes = actions.changes
        #expect(changes.first == .setPrivateKey(secret(200)))
        #expect(changes.last == .setLink(up: true))
        #expect(changes.contains(.setEndpoint(endpoint(9), of: key(1))), "the resolver's first")
        #expect(changes.contains(.setEndpoint(endpoint(2), of: key(2))))
        #expect(!changes.contains { if case .setEndpoint(_, key(3)) = $0 { true } else { false } })
        #expect(actions.last == .completeStart(RequestID(rawValue: 7), nil))
        // Nothing is sent by a tunnel that has no reason to.
        #expect(!actions.contains { if case .initiateHandshakes = $0 { true } else { false } })
        #expect(rig.provider.nextDeadline == nil)
    }

    @Test("Each name is looked up once, all at the same time, and all have to lead somewhere")
    func severalNames() throws {
        var rig = Rig()
        let configuration = tunnel(
            peer(1, at: "a.example"), peer(2, at: "b.example"), peer(3, at: "a.example"))
        let resolves = rig.handle(.start(request(1, configuration))).resolves
        #expect(resolves.map(\.0) == [name("a.example"), name("b.example")])
        #expect(rig.handle(.resolved(resolves[0].1, .success([endpoint(1)]))).isEmpty)
        let actions = rig.handle(.resolved(resolves[1].1, .failure(.noSuchName)))
        #expect(actions == [.completeStart(RequestID(rawValue: 1), .resolution(name("b.example"), .noSuchName))])
        #expect(rig.status == .disconnected)
        #expect(rig.reason == .failed(.resolution(name("b.example"), .noSuchName)))
    }

    @Test("A name that nobody answers for ends in a typed failure, long before resolvers give up by themselves")
    func silentResolver() throws {
        var rig = Rig()
        let (_, id, deadline) = try #require(
            rig.handle(.start(request(1, tunnel(peer(1, at: "vpn.example"))))).resolves.first)
        #expect(deadline < rig.now + Reference.resolverByItself)
        #expect(rig.provider.nextDeadline == deadline)
        let actions = rig.advance(Reference.resolverByItself)
        #expect(
            actions == [
                .cancelResolve(id),
                .completeStart(RequestID(rawValue: 1), .resolution(name("vpn.example"), .timedOut)),
            ])
        // An answer after that is nobody's.
        #expect(rig.handle(.resolved(id, .success([endpoint(1)]))).isEmpty)
        #expect(rig.status == .disconnected)
    }

    @Test("The last good address stands in for a name that cannot be looked up", arguments: [true, false])
    func rememberedAddress(answers: Bool) throws {
        var rig = Rig(remembered: [name("vpn.example"): endpoint(44)])
        let (_, id, deadline) = try #require(
            rig.handle(.start(request(1, tunnel(peer(1, at: "vpn.example"))))).resolves.first)
        let actions =
            answers
            ? rig.handle(.resolved(id, .failure(.temporaryFailure))) : rig.advance(deadline.since(rig.now))
        let (_, sockets) = try #require(actions.opens.first)
        let application = try #require(rig.handle(.socketsOpened(sockets, nil)).applies.first?.1)
        let changes = rig.handle(.settingsApplied(application, nil)).changes
        #expect(changes.contains(.setEndpoint(endpoint(44), of: key(1))))
    }

    @Test("What a name led to is remembered, and better so once the peer answered there")
    func remembering() throws {
        var rig = Rig()
        rig.bringUp(tunnel(peer(1, at: "vpn.example")), names: [name("vpn.example"): endpoint(1)])
        #expect(rig.provider.rememberedEndpoints == [name("vpn.example"): endpoint(1)])
        rig.handle(.endpointChanged(key(1), endpoint(5)))
        #expect(rig.provider.rememberedEndpoints == [name("vpn.example"): endpoint(1)])
        rig.handle(.handshakeCompleted(key(1)))
        #expect(rig.provider.rememberedEndpoints == [name("vpn.example"): endpoint(5)])
    }

    @Test("An address of a family that the path supports is preferred")
    func families() throws {
        let both = [
            Endpoint(address: v6("2001:db8::1"), port: 51_820), endpoint(1),
        ]
        for (path, chosen) in [(wiFi, both[1]), (cellularIPv6, both[0])] {
            var rig = Rig()
            rig.handle(.pathChanged(path))
            let (_, id, _) = try #require(
                rig.handle(.start(request(1, tunnel(peer(1, at: "vpn.example"))))).resolves.first)
            let sockets = try #require(rig.handle(.resolved(id, .success(both))).opens.first?.1)
            let application = try #require(rig.handle(.socketsOpened(sockets, nil)).applies.first?.1)
            let changes = rig.handle(.settingsApplied(application, nil)).changes
            #expect(changes.contains(.setEndpoint(chosen, of: key(1))))
        }
    }

    @Test("Sockets that cannot be opened end the start, and nothing is left", arguments: [true, false])
    func sockets(answers: Bool) throws {
        var rig = Rig()
        let id = try #require(rig.handle(.start(request(1, tunnel(peer(1, at: "192.0.2.1"))))).opens.first?.1)
        let actions = answers ? rig.handle(.socketsOpened(id, .portInUse)) : rig.advance(.seconds(30))
        #expect(
            actions == [
                .closeSockets, .completeStart(RequestID(rawValue: 1), .sockets(answers ? .portInUse : .late)),
            ])
        #expect(rig.status == .disconnected)
    }

    @Test("Settings that are refused and settings that are late end the start differently; both are cleared")
    func settings() throws {
        for isLate in [false, true] {
            var rig = Rig()
            let sockets = try #require(rig.handle(.start(request(1, tunnel(peer(1, at: "192.0.2.1"))))).opens.first?.1)
            let application = try #require(rig.handle(.socketsOpened(sockets, nil)).applies.first?.1)
            #expect(rig.provider.nextDeadline == rig.now + Reference.settingsAreLate)
            var actions: [Action]
            if isLate {
                #expect(rig.advance(.milliseconds(4999)).isEmpty)
                actions = rig.advance(.milliseconds(1))
            } else {
                actions = rig.handle(.settingsApplied(application, .networkSettingsInvalid))
            }
            let (restored, clearing) = try #require(actions.applies.first)
            #expect(restored == nil && actions.count == 1)
            #expect(rig.handle(.settingsApplied(application, nil)).isEmpty, "too late is too late")
            #expect(rig.status == .connecting)
            actions = rig.handle(.settingsApplied(clearing, nil))
            let failure: SettingsFailure = isLate ? .late : .refused(.networkSettingsInvalid)
            #expect(actions == [.closeSockets, .completeStart(RequestID(rawValue: 1), .settings(failure))])
            #expect(rig.status == .disconnected && rig.provider.currentStatus.settings == nil)
        }
    }

    @Test("A tunnel that is up or coming up is not started again")
    func twice() throws {
        var rig = Rig()
        let configuration = tunnel(peer(1, at: "192.0.2.1"))
        rig.handle(.start(request(1, configuration)))
        let again: [Action] = [.completeStart(RequestID(rawValue: 2), .alreadyStarted)]
        #expect(rig.handle(.start(request(2, configuration))) == again)
        rig = Rig()
        rig.bringUp(configuration)
        #expect(rig.handle(.start(request(2, configuration))) == again)
        #expect(rig.status == .connected)
    }

    @Test("A configuration that contradicts itself starts nothing")
    func invalid() {
        var small = tunnel(peer(1, at: nil))
        small.mtu = 1279
        var smallSix = small
        smallSix.addresses.append(interfaceAddress("fd00::1/64"))
        var tiny = small
        tiny.mtu = 67
        let table: [(TunnelConfiguration, InvalidTunnelConfiguration?)] = [
            (tunnel(peer(1, at: nil), peer(2, at: nil), peer(1, at: nil)), .duplicatePeer(first: 0, second: 2)),
            (smallSix, .mtuTooSmallForIPv6(1279)), (tiny, .invalidMTU(67)), (small, nil),
        ]
        for (configuration, problem) in table {
            var rig = Rig()
            let actions = rig.handle(.start(request(1, configuration)))
            if let problem {
                #expect(actions == [.completeStart(RequestID(rawValue: 1), .invalidConfiguration(problem))])
                #expect(rig.status == .disconnected)
            } else {
                #expect(rig.status == .connecting)
            }
        }
    }
}
