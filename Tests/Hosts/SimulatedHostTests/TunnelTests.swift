import ByteAccess
import IPPacket
import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

@Suite("Tunnels between devices")
struct TunnelTests {
    @Test("Packets reach the other end as they were, over IPv4 and IPv6 inside")
    func delivery() throws {
        let pair = TunnelPair(seed: 1)
        let (near, far) = (try IPv6Address(parsing: "fd00::1"), try IPv6Address(parsing: "fd00::2"))
        pair.left.device.addAllowedIP(IPPrefix(host: .v6(far)), for: pair.rightPeer)
        pair.right.device.addAllowedIP(IPPrefix(host: .v6(near)), for: pair.leftPeer)
        let packets = (0..<200).map { length in
            length % 2 == 0
                ? InnerPacket.udp(
                    from: pair.leftAddress, to: pair.rightAddress, payload: pair.generator.bytes(length * 7))
                : InnerPacket.udp(from: .v6(near), to: .v6(far), payload: pair.generator.bytes(length * 6))
        }
        for packet in packets.prefix(100) { pair.network.send(packet, from: pair.left) }
        try pair.advance(1)
        for packet in packets.dropFirst(100) { pair.network.send(packet, from: pair.left) }
        try pair.advance(1)
        #expect(pair.right.delivered == packets)
    }

    @Test(
        "N4: two ends that start at one moment carry data both ways within 11 s",
        arguments: 1...20 as ClosedRange<UInt64>)
    func simultaneousInitiation(seed: UInt64) throws {
        let pair = TunnelPair(seed: seed)
        pair.sendRight(1)
        pair.sendLeft(2)
        try pair.advance(11)
        #expect(pair.right.deliveredNumbers == [1])
        #expect(pair.left.deliveredNumbers == [2])
    }

    @Test("N4: so do two ends whose session ended at one moment", arguments: 1...10 as ClosedRange<UInt64>)
    func simultaneousRenewal(seed: UInt64) throws {
        let pair = TunnelPair(seed: seed)
        pair.sendRight(1)
        try pair.advance(400)
        pair.sendRight(2)
        pair.sendLeft(3)
        try pair.advance(11)
        #expect(pair.right.deliveredNumbers == [1, 2])
        #expect(pair.left.deliveredNumbers == [3])
    }

    @Test(
        "K4: a session is renewed every 120 s under load in both directions, and no packet is lost or overtaken",
        arguments: [1, 2] as [UInt64])
    func rekeyUnderLoad(seed: UInt64) throws {
        let pair = TunnelPair(seed: seed)
        pair.network.keepsLog = false
        pair.sendRight(0)
        try pair.advance(1)
        var sent: UInt64 = 0
        while pair.elapsed < 800 {
            sent += 1
            pair.sendRight(sent)
            pair.sendLeft(sent)
            try pair.advance(0.2)
        }
        try pair.advance(1)
        #expect(pair.right.deliveredNumbers == Array(0...sent))
        #expect(pair.left.deliveredNumbers == Array(1...sent))
    }

    @Test("W7: under load one end renews the session, once in 120 s")
    func oneEndRekeys() throws {
        let pair = TunnelPair(seed: 9)
        pair.sendRight(0)
        try pair.advance(1)
        while pair.elapsed < 1000 {
            pair.sendRight(1)
            pair.sendLeft(1)
            try pair.advance(0.5)
        }
        #expect(pair.count(.initiation, from: 0) == 9)
        #expect(pair.count(.initiation, from: 1) == 0)
        for (earlier, later) in zip(
            pair.times(of: .initiation, from: 0), pair.times(of: .initiation, from: 0).dropFirst())
        {
            #expect((120...121).contains(later - earlier))
        }
    }

    @Test("Two idle ends are silent: after the last keepalive nothing is sent for days")
    func idle() throws {
        let pair = TunnelPair(seed: 3)
        pair.sendRight(1)
        pair.sendLeft(2)
        try pair.advance(60)
        let before = pair.network.log.count
        try pair.advance(3 * 86_400)
        #expect(pair.network.log.count == before)
        #expect(pair.network.nextTime() == nil)
    }

    @Test("W5: keepalives of both ends for a day: one handshake in 120 s, none of them fought over")
    func keepalivesForADay() throws {
        let pair = TunnelPair(seed: 4)
        let now = pair.network.clock.now
        _ = pair.left.device.setPersistentKeepalive(.seconds(25), of: pair.rightPeer, at: now)
        _ = pair.right.device.setPersistentKeepalive(.seconds(25), of: pair.leftPeer, at: now)
        pair.sendRight(1)
        try pair.advance(86_400)
        let initiations = pair.count(.initiation, from: 0) + pair.count(.initiation, from: 1)
        #expect((86_400 / 150...86_400 / 120 + 1).contains(initiations))
        #expect(pair.count(.response, from: 0) + pair.count(.response, from: 1) == initiations)
    }

    @Test(
        "30 % loss: every end comes to a session, and about as many packets pass as the link lets through",
        arguments: 1...4 as ClosedRange<UInt64>)
    func loss(seed: UInt64) throws {
        let pair = TunnelPair(seed: seed, faults: LinkFaults(lossPerMille: 300, delay: .milliseconds(40)))
        pair.network.keepsLog = false
        var number: UInt64 = 0
        while pair.elapsed < 1200 {
            number += 1
            pair.sendRight(number)
            pair.sendLeft(number)
            try pair.advance(0.5)
        }
        try pair.advance(5)
        for machine in [pair.left, pair.right] {
            #expect(Set(machine.deliveredNumbers).count == machine.delivered.count)
            #expect(Double(machine.delivered.count) > 0.6 * Double(number))
        }
    }

    @Test("70 % loss: data passes again when the link is good again", arguments: 1...5 as ClosedRange<UInt64>)
    func heavyLoss(seed: UInt64) throws {
        let pair = TunnelPair(seed: seed, faults: LinkFaults(lossPerMille: 700, delay: .milliseconds(40)))
        for number in 0..<1000 as Range<UInt64> {
            pair.sendRight(number)
            try pair.advance(0.5)
        }
        pair.left.uplink.faults = LinkFaults()
        pair.right.uplink.faults = LinkFaults()
        try pair.advance(6)
        for number in 5000..<5020 as Range<UInt64> {
            pair.sendRight(number)
            try pair.advance(1)
        }
        #expect(pair.right.deliveredNumbers.suffix(15) == Array(5005..<5020)[...])
    }

    @Test(
        "K1: reordering and repetition deliver everything, and nothing twice", arguments: 1...3 as ClosedRange<UInt64>)
    func reordering(seed: UInt64) throws {
        let faults = LinkFaults(
            duplicationPerMille: 200, reorderingPerMille: 250, reorderingDelay: .milliseconds(100),
            delay: .milliseconds(20), jitter: .milliseconds(30))
        let pair = TunnelPair(seed: seed, faults: faults)
        pair.network.keepsLog = false
        pair.sendRight(0)
        try pair.advance(2)
        var number: UInt64 = 0
        while pair.elapsed < 130 {
            number += 1
            pair.sendRight(number)
            try pair.advance(0.02)
        }
        try pair.advance(2)
        let numbers = pair.right.deliveredNumbers
        #expect(numbers.count == Int(number) + 1)
        #expect(Set(numbers).count == numbers.count)
        #expect(numbers != numbers.sorted(), "the link did reorder")
    }

    @Test("Packets in = delivered + dropped + waiting, whatever the link does", arguments: 1...4 as ClosedRange<UInt64>)
    func accounting(seed: UInt64) throws {
        let faults = LinkFaults(
            lossPerMille: 100, duplicationPerMille: 100, reorderingPerMille: 100, delay: .milliseconds(15),
            jitter: .milliseconds(15))
        let pair = TunnelPair(seed: seed, faults: faults)
        var (packets, sent, refused, received, delivered, keepalives) = (0, 0, 0, 0, 0, 0)
        var seen = 0
        for round in 0..<400 as Range<UInt64> {
            if round % 40 == 20 { pair.right.uplink.isCut.toggle() }
            for _ in 0..<Int.random(in: 0..<20, using: &pair.generator) { pair.sendRight(round) }
            if round % 97 == 50 { pair.left.device.setLink(up: false, at: pair.network.clock.now) }
            if round % 97 == 52 { pair.left.device.setLink(up: true, at: pair.network.clock.now) }
            if round % 150 == 149 { pair.network.suspend(for: .seconds(500)) }
            try pair.advance(Double.random(in: 0..<3, using: &pair.generator))
            for event in pair.network.log[seen...] {
                switch (event.machine, event.kind) {
                case (0, .packetIn(_, let fate)):
                    packets += 1
                    if case .dropped = fate { refused += 1 }
                case (0, .sent(.data, _, _)): sent += 1
                case (1, .received(.data)): received += 1
                case (1, .received(.keepalive)): keepalives += 1
                case (1, .packetOut): delivered += 1
                default: break
                }
            }
            seen = pair.network.log.count
            // At the sender: every packet was sent, refused, lost its place in the queue, or waits.
            let left = pair.left.device.peer(pair.rightPeer)
            let dropped = Int(pair.left.device.drops[.stagedPacketDropped])
            #expect(packets == sent + refused + dropped + left.staged.count)
            #expect(pair.left.device.stagedBytes == left.staged.byteCount)
            // At the receiver: every message was delivered or dropped under a reason, empty ones perhaps among the latter.
            let drops = pair.right.device.drops
            let reasons: [DropReason] = [.unknownReceiver, .expiredSession, .notAuthentic, .replayedCounter]
            let lost = reasons.map { Int(drops[$0]) }.reduce(0, +)
            #expect((received - delivered...received - delivered + keepalives).contains(lost))
        }
        #expect(packets > 3000 && delivered > 1000)
    }

    @Test("A link that is cut and healed carries data again after one retry", arguments: 1...10 as ClosedRange<UInt64>)
    func cut(seed: UInt64) throws {
        let pair = TunnelPair(seed: seed)
        pair.sendRight(0)
        try pair.advance(100)
        pair.left.uplink.isCut = true
        pair.right.uplink.isCut = true
        for number in 1...100 as ClosedRange<UInt64> {
            pair.sendRight(number)
            try pair.advance(10)
        }
        pair.left.uplink.isCut = false
        pair.right.uplink.isCut = false
        pair.sendRight(1000)
        try pair.advance(5.4)
        // What waited comes too.
        #expect(pair.right.deliveredNumbers.last == 1000)
        #expect(pair.right.deliveredNumbers.contains(100))
    }

    @Test("R1: a machine that moves is followed with its first packet, on either end", arguments: [true, false])
    func roaming(leftMoves: Bool) throws {
        let pair = TunnelPair(seed: 6)
        pair.sendRight(0)
        try pair.advance(1)
        let mover = leftMoves ? pair.left : pair.right
        for step in 1...50 as ClosedRange<UInt8> {
            mover.addresses = [v4(198, 51, 100, step)]
            mover.port = 1000 + UInt16(step)
            if leftMoves { pair.sendRight(UInt64(step)) } else { pair.sendLeft(UInt64(step)) }
            try pair.advance(0.5)
            if leftMoves { pair.sendLeft(UInt64(step)) } else { pair.sendRight(UInt64(step)) }
            try pair.advance(0.5)
        }
        #expect(pair.right.deliveredNumbers == Array(0...50))
        #expect(pair.left.deliveredNumbers == Array(1...50))
    }

    @Test("R1: a machine moves from IPv4 to IPv6 and back")
    func roamingBetweenFamilies() throws {
        let pair = TunnelPair(seed: 6)
        pair.right.addresses.append(.v6(try IPv6Address(parsing: "2001:db8::2")))
        pair.sendRight(0)
        try pair.advance(1)
        pair.left.addresses = [.v6(try IPv6Address(parsing: "2001:db8::1"))]
        let v6 = Endpoint(address: .v6(try IPv6Address(parsing: "2001:db8::2")), port: 51820)
        pair.left.device.setEndpoint(v6, of: pair.rightPeer)
        pair.sendRight(1)
        try pair.advance(1)
        pair.sendLeft(2)
        try pair.advance(1)
        pair.left.addresses = [v4(192, 0, 2, 1)]
        pair.left.device.setEndpoint(Endpoint(address: v4(192, 0, 2, 2), port: 51820), of: pair.rightPeer)
        pair.sendRight(3)
        try pair.advance(1)
        pair.sendLeft(4)
        try pair.advance(1)
        #expect(pair.right.deliveredNumbers == [0, 1, 3])
        #expect(pair.left.deliveredNumbers == [2, 4])
    }

    @Test("N3: a preshared key changed on both ends counts from the next handshake on, on one end it parts them")
    func presharedKeys() throws {
        let pair = TunnelPair(seed: 7)
        pair.sendRight(0)
        try pair.advance(1)
        let key = pair.generator.bytes(32)
        pair.left.device.setPresharedKey(key.span.octets, of: pair.rightPeer)
        pair.right.device.setPresharedKey(key.span.octets, of: pair.leftPeer)
        for number in 1...300 as ClosedRange<UInt64> {
            pair.sendRight(number)
            try pair.advance(1)
        }
        #expect(pair.right.deliveredNumbers == Array(0...300))
        pair.left.device.setPresharedKey(pair.generator.bytes(32).span.octets, of: pair.rightPeer)
        let before = pair.right.delivered.count
        for number in 1...300 as ClosedRange<UInt64> {
            pair.sendRight(number)
            try pair.advance(1)
        }
        let after = pair.right.delivered.count - before
        #expect((50...180).contains(after), "the live session ends by its age, and no other is made")
        pair.right.device.setPresharedKey(key.span.octets, of: pair.leftPeer)
        pair.left.device.setPresharedKey(key.span.octets, of: pair.rightPeer)
        try pair.advance(12)
        pair.sendRight(9999)
        try pair.advance(1)
        #expect(pair.right.deliveredNumbers.last == 9999)
    }

    @Test("K5: new private keys on both ends, in either order, carry data at once", arguments: [true, false])
    func privateKeys(leftFirst: Bool) throws {
        let pair = TunnelPair(seed: 8)
        pair.sendRight(0)
        pair.sendLeft(0)
        try pair.advance(30)
        let now = pair.network.clock.now
        let (newLeft, newRight) = (pair.generator.bytes(32), pair.generator.bytes(32))
        pair.left.device.removeAllPeers()
        pair.right.device.removeAllPeers()
        let leftKey = pair.left.setKey(newLeft, at: now)
        let rightKey = pair.right.setKey(newRight, at: now)
        let ends = [
            Endpoint(address: v4(192, 0, 2, 1), port: 51820), Endpoint(address: v4(192, 0, 2, 2), port: 51820),
        ]
        func addLeft() { pair.right.add(leftKey, at: ends[0], allowing: IPPrefix(host: pair.leftAddress)) }
        func addRight() { pair.left.add(rightKey, at: ends[1], allowing: IPPrefix(host: pair.rightAddress)) }
        if leftFirst {
            addLeft()
            pair.sendLeft(1)
            try pair.advance(0.2)
            addRight()
        } else {
            addRight()
            pair.sendRight(1)
            try pair.advance(0.2)
            addLeft()
        }
        pair.sendRight(2)
        pair.sendLeft(3)
        try pair.advance(5.5)
        #expect(pair.right.deliveredNumbers.contains(2))
        #expect(pair.left.deliveredNumbers.contains(3))
    }

    @Test("Clock steps: the wall clock may jump at both ends and nothing but time stamps notices")
    func wallClockSteps() throws {
        let pair = TunnelPair(seed: 10)
        var number: UInt64 = 0
        for step in 0..<20 as Range<UInt64> {
            // Forwards, then backwards, to 1970 and to 2100.
            pair.network.setWallClock(
                WallClockTime(seconds: [1_750_000_000, 4_102_444_800, 0, 1_600_000_000][Int(step % 4)], nanoseconds: 1))
            for _ in 0..<40 {
                pair.sendRight(number)
                pair.sendLeft(number)
                number += 1
                try pair.advance(1)
            }
        }
        // Stamps of one end keep rising, so that the other takes every handshake.
        #expect(pair.left.device.drops[.replayedInitiation] == 0)
        #expect(pair.right.device.drops[.replayedInitiation] == 0)
        #expect(pair.right.deliveredNumbers == Array(0..<number))
    }

    @Test(
        "W11: after hours of sleep at both ends the first packet makes a session and arrives",
        arguments: [60, 150, 200, 600, 36_000] as [UInt64])
    func suspend(sleep: UInt64) throws {
        let pair = TunnelPair(seed: 11)
        pair.sendRight(0)
        try pair.advance(1)
        pair.sendLeft(0)
        try pair.advance(4)
        pair.network.suspend(for: .seconds(sleep))
        pair.sendRight(1)
        // Both slept, and what both missed may make them start at one moment.
        try pair.advance(11)
        pair.sendLeft(2)
        try pair.advance(1)
        #expect(pair.right.deliveredNumbers == [0, 1])
        #expect(pair.left.deliveredNumbers == [0, 2])
    }

    @Test(
        "C5, C8: a peer comes to a session with a device under a flood, by way of a cookie",
        arguments: [1] as [UInt64])
    func flood(seed: UInt64) throws {
        let pair = TunnelPair(seed: seed)
        // Initiations of nobody, with a right first code: taken from a device whose key the right one does not know.
        let stranger = pair.network.addMachine(v4(203, 0, 113, 1))
        _ = stranger.setKey(pair.generator.bytes(32), at: pair.start)
        stranger.add(
            pair.rightKey, at: Endpoint(address: v4(203, 0, 113, 250), port: 1),
            allowing: IPPrefix(host: pair.rightAddress))
        pair.network.send(InnerPacket.numbered(0, from: pair.leftAddress, to: pair.rightAddress), from: stranger)
        try pair.network.run()
        let initiation = try #require(pair.network.takeOutside().first).bytes
        func floodOnce() {
            for port in 0..<520 as Range<UInt16> {
                pair.network.inject(initiation, from: Endpoint(address: v4(203, 0, 113, 7), port: port), to: pair.right)
            }
        }
        for tick in 0..<26 as Range<UInt64> {
            pair.network.schedule(at: pair.start + .milliseconds(500 * tick)) { _ in floodOnce() }
        }
        try pair.advance(1)
        pair.sendRight(1)
        try pair.advance(12)
        #expect(pair.right.deliveredNumbers == [1])
        #expect(pair.count(.initiation, from: 0) >= 2)
        #expect(pair.count(.cookieReply, from: 1) > 1000)
        #expect(pair.right.device.drops[.rateLimited] == 0, "nobody without a cookie gets as far")
        pair.sendLeft(2)
        try pair.advance(1)
        #expect(pair.left.deliveredNumbers == [2])
    }

    @Test("A removed peer is silent at once, and comes back with its key")
    func removal() throws {
        let pair = TunnelPair(seed: 12)
        pair.sendRight(0)
        try pair.advance(1)
        pair.right.device.removePeer(pair.leftPeer)
        pair.sendRight(1)
        try pair.advance(20)
        #expect(pair.right.deliveredNumbers == [0])
        #expect(pair.count(.keepalive, from: 1) + pair.count(.data, from: 1) == 0)
        pair.right.add(
            pair.leftKey, at: nil, allowing: IPPrefix(host: pair.leftAddress))
        try pair.advance(30)
        pair.sendRight(2)
        try pair.advance(1)
        #expect(pair.right.deliveredNumbers.last == 2)
    }

    @Test("A datagram sent into its own tunnel again and again dies out")
    func routingLoop() throws {
        let pair = TunnelPair(seed: 13)
        // The right end's address lies inside the tunnel to it: the left machine's own datagrams come back to its TUN.
        pair.left.device.addAllowedIP(IPPrefix(host: v4(192, 0, 2, 2)), for: pair.rightPeer)
        pair.left.device.setEndpoint(Endpoint(address: v4(192, 0, 2, 3), port: 51820), of: pair.rightPeer)
        pair.left.device.addAllowedIP(IPPrefix(host: v4(192, 0, 2, 3)), for: pair.rightPeer)
        pair.sendRight(1)
        var sent = 0
        for _ in 0..<10_000 {
            try pair.advance(0.01)
            for datagram in pair.network.takeOutside() {
                sent += datagram.bytes.count
                // What leaves is routed into the TUN.
                var packet = InnerPacket.udp(
                    from: datagram.source.address, to: datagram.destination.address, payload: datagram.bytes)
                packet.replaceSubrange(
                    20..<24,
                    with: [datagram.source.port, datagram.destination.port].flatMap {
                        [UInt8($0 >> 8), UInt8($0 & 0xff)]
                    })
                pair.network.send(packet, from: pair.left)
            }
        }
        #expect(sent < 70_000)
        #expect(pair.left.device.drops[.routingLoop] > 0)
    }
}
