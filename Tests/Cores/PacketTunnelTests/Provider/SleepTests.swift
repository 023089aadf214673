import IPPacket
import PacketTunnel
import Provider
import Testing
import WireGuard

@Suite("Sleeping and waking")
struct SleepTests {
    private func connected() -> Rig {
        var rig = Rig()
        rig.handle(.pathChanged(wiFi))
        rig.bringUp(tunnel(peer(1, at: "192.0.2.1"), peer(2, at: "192.0.2.2")))
        rig.handle(.handshakeCompleted(key(1)))
        return rig
    }

    @Test("Asleep there is no deadline and no state is lost; awake it goes on")
    func timersStop() {
        var rig = connected()
        #expect(rig.handle(.sleep) == [.pauseDevice, .completeSleep])
        #expect(rig.provider.nextDeadline == nil)
        #expect(rig.status == .connected && rig.provider.currentStatus.isAsleep)
        rig.skip(.seconds(60))
        #expect(rig.provider.handleDeadlines(at: rig.now).isEmpty)
        #expect(rig.handle(.wake) == [.resumeDevice])
        #expect(!rig.provider.currentStatus.isAsleep && rig.status == .connected)
    }

    @Test(
        "A peer whose session grew old meanwhile gets a handshake; who had none before the sleep gets none",
        arguments: [(60, false), (119, false), (120, true), (200, true), (86_400, true)] as [(UInt64, Bool)])
    func freshHandshake(seconds: UInt64, isStale: Bool) {
        var rig = connected()
        rig.handle(.sleep)
        rig.skip(.seconds(seconds))
        #expect(rig.handle(.wake) == (isStale ? [.resumeDevice, .initiateHandshakes([key(1)])] : [.resumeDevice]))
    }

    @Test("A tunnel that was silent before the sleep is silent after it")
    func silence() {
        var rig = connected()
        rig.skip(Reference.rejectAfterTime)
        rig.handle(.sleep)
        rig.skip(.seconds(1000))
        #expect(rig.handle(.wake) == [.resumeDevice])
    }

    @Test("What became due in the sleep is done once, when it is over")
    func dueOnce() {
        var rig = connected()
        rig.handle(.pathChanged(.none))
        rig.handle(.sleep)
        rig.skip(.seconds(200))
        #expect(
            rig.handle(.wake) == [.resumeDevice, .setReasserting(true), .configure([.setLink(up: false)])])
        #expect(rig.provider.nextDeadline == nil)
        // Its session was good when the path was lost.
        #expect(rig.handle(.pathChanged(wiFi)).last == .initiateHandshakes([key(1)]))
    }

    @Test("A start goes on after a sleep, within the time that it has")
    func startAcrossSleep() throws {
        var rig = Rig()
        let sockets = try #require(rig.handle(.start(request(1, tunnel(peer(1, at: "192.0.2.1"))))).opens.first?.1)
        #expect(rig.handle(.sleep) == [.pauseDevice, .completeSleep])
        let application = try #require(rig.handle(.socketsOpened(sockets, nil)).applies.first?.1)
        rig.skip(.seconds(3))
        rig.handle(.wake)
        #expect(rig.handle(.settingsApplied(application, nil)).starts.first?.1 == nil)
        #expect(rig.status == .connected)
    }

    @Test("Each request to sleep is answered, and a stop wakes the device")
    func answers() {
        var rig = connected()
        rig.handle(.sleep)
        #expect(rig.handle(.sleep) == [.completeSleep])
        let actions = rig.handle(.stop(.sleep))
        #expect(actions.first == .resumeDevice && rig.provider.nextDeadline != nil)
        #expect(rig.handle(.wake).isEmpty)
    }
}
