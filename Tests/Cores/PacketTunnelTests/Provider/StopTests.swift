import IPPacket
import PacketTunnel
import Provider
import Testing
import WireGuard

@Suite("Stopping a packet tunnel")
struct StopTests {
    /// A stage that a tunnel can be in, with the operations that are under way.
    enum Stage: CaseIterable {
        case disconnected, resolving, opening, applying, rollingBack, connected, grace, suspended, resuming, remapping,
            asleep, reloadResolving, reloadOpening, reloadApplying, reloadRollingBack

        func reach(_ rig: inout Rig) throws {
            let configuration = tunnel(peer(1, at: "vpn.example"))
            if self == .disconnected { return }
            let (_, id, _) = try #require(rig.handle(.start(request(1, configuration))).resolves.first)
            if self == .resolving { return }
            let sockets = try #require(rig.handle(.resolved(id, .success([endpoint(1)]))).opens.first?.1)
            if self == .opening { return }
            let application = try #require(rig.handle(.socketsOpened(sockets, nil)).applies.first?.1)
            if self == .applying { return }
            if self == .rollingBack {
                rig.handle(.settingsApplied(application, .networkSettingsFailed))
                return
            }
            rig.handle(.settingsApplied(application, nil), .pathChanged(wiFi), .handshakeCompleted(key(1)))
            var changed = configuration
            changed.listenPort = 7000
            changed.mtu = 1400
            changed.peers.append(peer(2, at: "new.example"))
            switch self {
            case .grace: rig.handle(.pathChanged(.none))
            case .suspended, .resuming:
                rig.handle(.pathChanged(.none))
                rig.advance(.seconds(20))
                if self == .resuming { rig.handle(.pathChanged(wiFi)) }
            case .remapping: rig.handle(.pathChanged(cellularIPv6))
            case .asleep: rig.handle(.sleep)
            case .reloadResolving: rig.handle(.reload(request(5, changed)))
            case .reloadOpening, .reloadApplying, .reloadRollingBack:
                let name = try #require(rig.handle(.reload(request(5, changed))).resolves.first?.1)
                let sockets = try #require(rig.handle(.resolved(name, .success([endpoint(2)]))).opens.first?.1)
                if self == .reloadOpening { return }
                let application = try #require(rig.handle(.socketsOpened(sockets, nil)).applies.first?.1)
                if self == .reloadRollingBack { rig.handle(.settingsApplied(application, .networkSettingsFailed)) }
            default: break
            }
        }
    }

    @Test("From every stage a stop ends in one completion, after which nothing follows", arguments: Stage.allCases)
    func everyStage(stage: Stage) throws {
        var rig = Rig()
        try stage.reach(&rig)
        let hadSettings = ![.disconnected, .resolving, .opening].contains(stage)
        var actions = rig.handle(.stop(.userInitiated))
        if hadSettings {
            #expect(rig.status == .disconnecting && actions.stops == 0)
            let (cleared, clearing) = try #require(actions.applies.last)
            #expect(cleared == nil)
            actions += rig.handle(.settingsApplied(clearing, nil))
        }
        #expect(rig.status == .disconnected && rig.reason == .stopped(.userInitiated))
        #expect(actions.stops == 1)
        #expect(actions.last == .completeStop(nil))
        let isConnecting = [Stage.resolving, .opening, .applying, .rollingBack].contains(stage)
        #expect(actions.starts.count == (isConnecting ? 1 : 0))
        if isConnecting { #expect(actions.starts.first?.1 == .stopped(.userInitiated)) }
        let isReloading = [Stage.reloadResolving, .reloadOpening, .reloadApplying, .reloadRollingBack].contains(stage)
        #expect(actions.reloads.count == (isReloading ? 1 : 0))
        // Reasserting is taken back, and the device is empty.
        #expect(actions.reassertings == ([Stage.suspended, .resuming].contains(stage) ? [false] : []))
        if hadSettings, !isConnecting {
            #expect(actions.changes == [.setLink(up: false), .removeAllPeers, .setPrivateKey(nil)])
        }
        // Whatever comes in late is nobody's.
        for number in 0..<40 as Range<UInt64> {
            let id = OperationID(rawValue: number)
            #expect(
                rig.handle(
                    .resolved(id, .success([endpoint(3)])), .socketsOpened(id, nil), .settingsApplied(id, nil),
                    .remapped(id, v6("64:ff9b::1")), .handshakeCompleted(key(1)), .endpointChanged(key(1), endpoint(4)),
                    .pathChanged(cellular), .pathChanged(.none)
                ).isEmpty)
        }
        #expect(rig.provider.nextDeadline == nil)
        #expect(rig.advance(.seconds(1000)).isEmpty)
    }

    @Test("What was looked up is given up", arguments: [Stage.resolving, .resuming, .reloadResolving])
    func cancels(stage: Stage) throws {
        var rig = Rig()
        try stage.reach(&rig)
        let actions = rig.handle(.stop(.none))
        #expect(actions.count { if case .cancelResolve = $0 { true } else { false } } == 1)
    }

    @Test("Settings that cannot be cleared, or are cleared late, are told of, and tried again by the next stop")
    func stubbornSettings() throws {
        for isLate in [false, true] {
            var rig = Rig()
            rig.bringUp(tunnel(peer(1, at: "192.0.2.1")))
            let clearing = try #require(rig.handle(.stop(.userInitiated)).applies.first?.1)
            let actions =
                isLate
                ? rig.advance(Reference.settingsAreLate)
                : rig.handle(.settingsApplied(clearing, .networkSettingsFailed))
            #expect(actions == [.completeStop(isLate ? .late : .refused(.networkSettingsFailed))])
            #expect(rig.status == .disconnected)
            let again = rig.handle(.stop(.userInitiated))
            let id = try #require(again.applies.first?.1)
            #expect(rig.handle(.settingsApplied(id, nil)) == [.completeStop(nil)])
            #expect(rig.handle(.stop(.userInitiated)) == [.completeStop(nil)])
        }
    }

    @Test("A start during a stop is begun after it; a later one takes its place, and a stop ends it")
    func queuedStart() throws {
        var rig = Rig()
        let configuration = tunnel(peer(1, at: "192.0.2.1"))
        rig.bringUp(configuration)
        let clearing = try #require(rig.handle(.stop(.superceded)).applies.first?.1)
        #expect(rig.handle(.start(request(2, configuration))).isEmpty)
        #expect(
            rig.handle(.start(request(3, configuration))) == [.completeStart(RequestID(rawValue: 2), .superseded)])
        let actions = rig.handle(.settingsApplied(clearing, nil))
        #expect(actions.first == .completeStop(nil))
        let sockets = try #require(actions.opens.first?.1)
        #expect(actions.count == 2 && rig.status == .connecting)
        let application = try #require(rig.handle(.socketsOpened(sockets, nil)).applies.first?.1)
        #expect(rig.handle(.settingsApplied(application, nil)).starts.first?.0 == RequestID(rawValue: 3))
        #expect(rig.status == .connected)

        let second = try #require(rig.handle(.stop(.userInitiated)).applies.first?.1)
        rig.handle(.start(request(4, configuration)))
        #expect(
            rig.handle(.stop(.userLogout)) == [.completeStart(RequestID(rawValue: 4), .stopped(.userLogout))])
        #expect(rig.handle(.settingsApplied(second, nil)) == [.completeStop(nil)])
        #expect(rig.status == .disconnected)
    }

    @Test("A stop discards the events before it that came in with it; requests among them are answered")
    func discardsQueued() throws {
        var rig = Rig()
        let configuration = tunnel(peer(1, at: "192.0.2.1"))
        rig.bringUp(configuration)
        let actions = rig.handle(
            .pathChanged(wiFi), .pathChanged(cellular), .reload(request(8, tunnel(peer(2, at: "b.example")))),
            .endpointChanged(key(1), endpoint(9)), .stop(.appUpdate))
        #expect(actions.reloads.map(\.0.rawValue) == [8])
        #expect(actions.resolves.isEmpty && !actions.contains(.rebindSockets))
        #expect(actions.contains(.closeSockets))
        var fresh = Rig()
        #expect(
            fresh.handle(.start(request(9, configuration)), .stop(.appUpdate)) == [
                .completeStart(RequestID(rawValue: 9), .stopped(.appUpdate)), .completeStop(nil),
            ])
        // A start after the stop counts.
        var other = Rig()
        let both = other.handle(.stop(.appUpdate), .start(request(9, configuration)))
        #expect(both.first == .completeStop(nil) && both.opens.count == 1)
    }

    @Test("What a stop waits for is over when it comes, also when another stop comes in with it")
    func answerBesideStop() throws {
        for failure in [nil, NetworkSettingsError.networkSettingsFailed] {
            var rig = Rig()
            let configuration = tunnel(peer(1, at: "192.0.2.1"))
            rig.bringUp(configuration)
            let clearing = try #require(rig.handle(.stop(.userInitiated)).applies.first?.1)
            rig.handle(.start(request(2, configuration)))
            let actions = rig.handle(.settingsApplied(clearing, failure), .stop(.appUpdate))
            #expect(
                actions.prefix(2) == [
                    .completeStart(RequestID(rawValue: 2), .stopped(.appUpdate)),
                    .completeStop(failure.map { .refused($0) }),
                ])
            if failure == nil {
                #expect(actions.dropFirst(2) == [.completeStop(nil)])
            } else {
                let again = try #require(actions.applies.first?.1)
                #expect(rig.handle(.settingsApplied(again, nil)) == [.completeStop(nil)])
            }
            #expect(rig.status == .disconnected && rig.provider.nextDeadline == nil)
        }
    }

    @Test("A tunnel whose host cannot go on ends by itself, and takes everything back", arguments: Stage.allCases)
    func failure(stage: Stage) throws {
        var rig = Rig()
        try stage.reach(&rig)
        let before = rig.status
        var actions = rig.handle(.fail(.interfaceRemoved))
        if let clearing = actions.applies.last?.1 { actions += rig.handle(.settingsApplied(clearing, nil)) }
        #expect(rig.status == .disconnected)
        switch before {
        case .connecting: #expect(actions.starts.map(\.1) == [.provider(.interfaceRemoved)])
        case .disconnected: #expect(actions.isEmpty)
        default: #expect(actions.last == .cancelTunnel(.interfaceRemoved))
        }
        #expect(actions.stops == 0)
        #expect(rig.handle(.stop(.providerFailed)) == [.completeStop(nil)])
    }
}
