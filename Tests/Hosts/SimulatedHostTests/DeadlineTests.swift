import ByteAccess
import IPPacket
import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

@Suite("Deadlines")
struct DeadlineTests {
    /// Sends, cuts, moves, sleeps and reconfigures at random. The network itself checks after every step that no deadline
    /// is left at or before the time of the step, and that no device asks for the same instant for ever.
    @Test("No deadline survives being polled, and none lies in the past", arguments: 1...8 as ClosedRange<UInt64>)
    func randomSchedule(seed: UInt64) throws {
        let pair = TunnelPair(
            seed: seed,
            faults: LinkFaults(
                lossPerMille: 250, duplicationPerMille: 50, reorderingPerMille: 100, delay: .milliseconds(20),
                jitter: .milliseconds(50)))
        pair.network.keepsLog = false
        for step in 0..<250 as Range<UInt64> {
            let now = pair.network.clock.now
            let machine = Bool.random(using: &pair.generator) ? pair.left : pair.right
            let peer = machine === pair.left ? pair.rightPeer : pair.leftPeer
            switch Int.random(in: 0..<16, using: &pair.generator) {
            case 0..<6: pair.sendRight(step)
            case 6..<9: pair.sendLeft(step)
            case 9: machine.uplink.isCut.toggle()
            case 10:
                let interval = [nil, 1, 25, 65_535][Int.random(in: 0..<4, using: &pair.generator)] as UInt64?
                _ = machine.device.setPersistentKeepalive(interval.map { .seconds($0) }, of: peer, at: now)
            case 11:
                machine.device.setLink(up: Bool.random(using: &pair.generator), at: now)
            case 12: pair.network.suspend(for: .seconds(UInt64.random(in: 0..<700, using: &pair.generator)))
            case 13: machine.device.peerConfigured(peer, startsKeepalives: true)
            case 14: machine.addresses = [v4(198, 51, 100, UInt8.random(in: 0...255, using: &pair.generator))]
            default:
                let (left, right) = (pair.left.device.peer(pair.rightPeer), pair.right.device.peer(pair.leftPeer))
                for rotation in [left.sessions, right.sessions] {
                    rotation.current?.setNextCounter(UInt64.random(in: 0...UInt64.max, using: &pair.generator))
                }
            }
            try pair.advance(Double.random(in: 0..<20, using: &pair.generator))
            // Polling again at the same time changes nothing.
            let deadlines = [pair.left.device.nextDeadline(), pair.right.device.nextDeadline()]
            try pair.network.run()
            #expect([pair.left.device.nextDeadline(), pair.right.device.nextDeadline()] == deadlines)
        }
    }

    @Test("Equal seeds give equal schedules")
    func schedules() throws {
        func schedule(_ seed: UInt64) throws -> [Instant] {
            let pair = TunnelPair(seed: seed, faults: LinkFaults(lossPerMille: 300))
            var times: [Instant] = []
            _ = pair.left.device.setPersistentKeepalive(.seconds(7), of: pair.rightPeer, at: pair.start)
            _ = pair.right.device.setPersistentKeepalive(.seconds(9), of: pair.leftPeer, at: pair.start)
            for _ in 0..<200 {
                guard let next = pair.network.nextTime() else { break }
                times.append(next)
                try pair.network.run(until: next)
                if times.count % 5 == 0 { pair.sendLeft(2) }
            }
            return times
        }
        let first = try schedule(5)
        #expect(first.count == 200)
        #expect(try schedule(5) == first)
        #expect(try schedule(6) != first)
    }

    @Test("A late poll observes each expiry once")
    func latePoll() throws {
        let pair = TunnelPair(seed: 3)
        pair.sendRight(1)
        try pair.advance(1)
        pair.left.uplink.isCut = true
        _ = pair.left.device.setPersistentKeepalive(.seconds(1), of: pair.rightPeer, at: pair.network.clock.now)
        // A hundred intervals pass while nobody asks.
        pair.network.suspend(for: .seconds(100))
        let before = pair.count(.keepalive, from: 0)
        try pair.network.run()
        #expect(pair.count(.keepalive, from: 0) == before + 1)
        // The same with a retry: one initiation, not twenty.
        try pair.advance(200)
        let initiations = pair.count(.initiation, from: 0)
        pair.network.suspend(for: .seconds(80))
        try pair.network.run()
        #expect(pair.count(.initiation, from: 0) == initiations + 1)
    }

    @Test("20,000 peers with keepalives: all are served in time, and the time between costs nothing")
    func manyPeers() throws {
        let network = TestNetwork(seed: 20, makePrimitives: makePrimitives)
        network.keepsLog = false
        var generator = SeededGenerator(seed: 21)
        let hub = network.addMachine(v4(192, 0, 2, 1))
        _ = hub.setKey(generator.bytes(32), at: network.clock.now)
        // Their keys are points nobody owns: initiations leave, none is answered. Every tenth has a short interval.
        for number in 0..<20_000 as Range<UInt32> {
            let key = generator.bytes(32)
            let peer = hub.add(
                PublicKey(key.span.octets),
                at: Endpoint(address: .v4(IPv4Address(bits: 0xc633_6400 + number)), port: 9),
                allowing: IPPrefix(host: .v4(IPv4Address(bits: 0x0a00_0000 + number))))
            let interval: UInt64 = number % 10 == 0 ? 25 : 3600
            _ = hub.device.setPersistentKeepalive(.seconds(interval), of: peer, at: network.clock.now)
        }
        try network.run(for: .seconds(24))
        #expect(network.takeOutside().isEmpty)
        try network.run(for: .seconds(1))
        #expect(Set(network.takeOutside().map(\.destination)).count == 2000)
        hub.device.removeAllPeers()
        #expect(network.nextTime() == nil)
    }
}
