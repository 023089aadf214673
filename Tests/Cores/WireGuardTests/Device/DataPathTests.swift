import IPPacket
import Provider
import SimulatedHost
import Testing

@testable import WireGuard

@Suite("Data path")
struct DataPathTests {
    // MARK: Transmit

    @Test("X1: a packet for no peer is answered by a host unreachable error, of the right family")
    func noPeer() throws {
        let rig = Rig()
        let packet = InnerPacket.udp(from: rig.ownAddress, to: v4(203, 0, 113, 5), payload: [1, 2, 3])
        #expect(try rig.send(packet).isEmpty)
        let error = try #require(rig.machine.unreachable.first)
        #expect(error[9] == 1, "ICMP")
        #expect(error[20] == 3 && error[21] == 1)
        #expect(Array(error[16..<20]) == [10, 9, 0, 1], "to the sender")
        #expect(Array(error[12..<16]) == [203, 0, 113, 5], "from the destination")
        #expect(Array(error[28...].prefix(28)) == Array(packet.prefix(28)))
        #expect(rig.drops(.noPeer) == 1)

        let (source, destination) = (try IPv6Address(parsing: "fd00::1"), try IPv6Address(parsing: "2001:db8::9"))
        try rig.send(InnerPacket.udp(from: .v6(source), to: .v6(destination), payload: [1]))
        let error6 = try #require(rig.machine.unreachable.last)
        #expect(error6[6] == 58, "ICMPv6")
        #expect(error6[40] == 1 && error6[41] == 3)
    }

    @Test("X1: a packet for a peer whose address is unknown is answered the same way")
    func noEndpoint() throws {
        let rig = Rig(hasEndpoint: false)
        #expect(try rig.send(rig.packet(1)).isEmpty)
        #expect(rig.machine.unreachable.first.map { Array($0[20..<22]) } == [3, 1])
        #expect(rig.drops(.noEndpoint) == 1)
        #expect(rig.state.staged.isEmpty)
    }

    @Test("X1: errors are limited to 50 at once and 100 a second")
    func errorRate() throws {
        let rig = Rig()
        let packet = InnerPacket.udp(from: rig.ownAddress, to: v4(203, 0, 113, 5), payload: [1])
        for _ in 0..<500 { try rig.send(packet) }
        #expect(rig.machine.unreachable.count == 50)
        try rig.advance(0.1)
        for _ in 0..<500 { try rig.send(packet) }
        #expect(rig.machine.unreachable.count == 60)
        #expect(rig.drops(.noPeer) == 1000)
    }

    @Test("X1: what is no IP packet is dropped and counted")
    func malformedTUNPacket() throws {
        let rig = Rig()
        let packet = rig.packet(1)
        let cases: [[UInt8]] = [[], [0x45], Array(packet[..<19]), Array(packet[..<30]), [0x55] + packet.dropFirst()]
        for bad in cases {
            #expect(try rig.send(bad).isEmpty)
        }
        #expect(rig.drops(.malformedTUNPacket) == 5)
    }

    @Test("X4: plaintexts are padded to 16 bytes, but not beyond the MTU")
    func padding() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        rig.device.mtu = 1420
        let cases = [(28, 32), (32, 32), (33, 48), (1404, 1408), (1408, 1408), (1409, 1420), (1420, 1420)]
        for (length, padded) in cases {
            let payload = [UInt8](repeating: 0xee, count: length - 28)
            let packet = InnerPacket.udp(from: rig.ownAddress, to: rig.remoteAddress, payload: payload)
            let message = try rig.firstSent(for: packet).bytes
            #expect(message.count == 32 + padded)
            let plaintext = try #require(session.open(message)).plaintext
            #expect(plaintext == packet + [UInt8](repeating: 0, count: padded - length))
        }
    }

    @Test(
        "X4: a packet longer than the MTU is padded by what is over a multiple of it",
        arguments: [
            (1421, 1436), (2840, 2840), (2841, 2856), (2839, 2840),
        ])
    func paddingBeyondMTU(length: Int, padded: Int) {
        #expect(PaddedLength.of(length, mtu: 1420) == padded)
    }

    @Test("X4: a packet is sent without the bytes behind its end")
    func trailingBytes() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        let message = try rig.firstSent(for: rig.packet(1) + [0xff, 0xff, 0xff, 0xff, 0xff]).bytes
        #expect(session.open(message)?.plaintext == rig.packet(1) + [UInt8](repeating: 0, count: 12))
    }

    @Test("X5: 128 packets wait for a session; the oldest go when more come, the others keep their order")
    func stagedQueue() throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(0))
        for number in 1..<200 { try rig.send(rig.packet(UInt64(number))) }
        #expect(rig.drops(.stagedPacketDropped) == 200 - UInt64(Paper.stagedPackets))
        let (response, session) = try rig.response(to: initiation.bytes)
        try rig.receive(response)
        let numbers = try rig.sent().map { datagram in
            InnerPacket.number(of: Array(try #require(session.open(datagram.bytes)).plaintext.prefix(36)))
        }
        #expect(numbers == Array(72..<200))
    }

    @Test("X5: a packet does not overtake those that wait")
    func orderAcrossSession() throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(1))
        try rig.send(rig.packet(2))
        let (response, session) = try rig.response(to: initiation.bytes)
        // The response is queued; before the device works on it, and between its actions, packets come.
        rig.network.inject(response, from: rig.endpoint, to: rig.machine)
        #expect(rig.network.send(rig.packet(3), from: rig.machine) == .staged)
        let sent = try rig.sent()
        let numbers = try sent.map {
            InnerPacket.number(of: Array(try #require(session.open($0.bytes)).plaintext[..<36]))
        }
        #expect(numbers == [1, 2, 3])
    }

    @Test("X6: ten pings of 84 bytes are 1428 bytes out and 1372 bytes in at the initiator")
    func transferCounters() throws {
        let rig = Rig()
        let ping = InnerPacket.udp(
            from: rig.ownAddress, to: rig.remoteAddress, payload: [UInt8](repeating: 1, count: 56))
        let pong = InnerPacket.udp(
            from: rig.remoteAddress, to: rig.ownAddress, payload: [UInt8](repeating: 1, count: 56))
        let initiation = try rig.firstSent(for: ping)
        var (response, session) = try rig.response(to: initiation.bytes)
        try rig.receive(response)
        let padding = [UInt8](repeating: 0, count: 12)
        for round in 0..<10 {
            if round > 0 { try rig.send(ping) }
            try rig.receive(session.seal(pong + padding))
            try rig.advance(0.01)
        }
        #expect(rig.state.sentBytes == 1428)
        #expect(rig.state.receivedBytes == 1372)
        // A keepalive each way: 32 bytes.
        try rig.receive(session.seal([]))
        #expect(rig.state.receivedBytes == 1404)
        try rig.receive(session.seal(pong + padding))
        try rig.advance(10.1)
        #expect(rig.state.sentBytes == 1460)
    }

    @Test("1.17: a packet that is our own datagram to the very peer is dropped and counted")
    func routingLoop() throws {
        let rig = Rig()
        _ = try rig.sessionAsResponder()
        rig.device.addAllowedIP(IPPrefix(address: v4(0, 0, 0, 0), length: 0), for: rig.peer)
        var packet = InnerPacket.udp(from: v4(192, 0, 2, 1), to: rig.endpoint.address, payload: [4, 0, 0, 0])
        packet[20] = UInt8(51820 >> 8)
        packet[21] = UInt8(51820 & 0xff)
        packet[22] = UInt8(rig.endpoint.port >> 8)
        packet[23] = UInt8(rig.endpoint.port & 0xff)
        #expect(try rig.send(packet).isEmpty)
        #expect(rig.drops(.routingLoop) == 1)
        // Other traffic to the same address is fine.
        packet[21] ^= 1
        #expect(try rig.send(packet).kinds == [.data])
    }

    // MARK: Outer header

    @Test("O1: handshakes are sent with 0x88, keepalives with 0, data with the inner ECN bits, CE as ECT(0)")
    func trafficClass() throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(1))
        #expect(initiation.trafficClass == 0x88)
        try rig.receive(rig.response(to: initiation.bytes).message)
        _ = try rig.sent()
        try rig.advance(1)
        try rig.receive(rig.initiation().message)
        #expect(try rig.sent().map(\.trafficClass) == [0x88])
        for (inner, outer) in [(0x00, 0), (0xb8, 0), (0xb9, 1), (0xba, 2), (0xbb, 2), (0x03, 2)] as [(UInt8, UInt8)] {
            let packet = InnerPacket.udp(
                from: rig.ownAddress, to: rig.remoteAddress, payload: [1], trafficClass: inner)
            #expect(try rig.send(packet).map(\.trafficClass) == [outer])
        }
    }

    @Test("O1: a packet that waited for a session keeps its ECN bits too")
    func stagedTrafficClass() throws {
        let rig = Rig()
        let packet = InnerPacket.udp(from: rig.ownAddress, to: rig.remoteAddress, payload: [1], trafficClass: 0xb9)
        let initiation = try rig.firstSent(for: packet)
        try rig.receive(rig.response(to: initiation.bytes).message)
        #expect(try rig.sent().map(\.trafficClass) == [1])
    }

    @Test(
        "O2: congestion outside is marked inside, in ECN-capable packets only",
        arguments: [
            (0x00, 0x00), (0x01, 0x03), (0x02, 0x03), (0x03, 0x03), (0xb8, 0xb8), (0xba, 0xbb),
        ] as [(UInt8, UInt8)])
    func congestion(inner: UInt8, result: UInt8) throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        let packet = InnerPacket.udp(from: rig.remoteAddress, to: rig.ownAddress, payload: [1], trafficClass: inner)
        let expected = InnerPacket.udp(from: rig.remoteAddress, to: rig.ownAddress, payload: [1], trafficClass: result)
        #expect(try rig.receive(session.seal(packet), trafficClass: 0x03) == [expected])
        #expect(try rig.receive(session.seal(packet), trafficClass: 0x02) == [packet])
        #expect(try rig.receive(session.seal(packet), trafficClass: 0x88) == [packet])
    }

    // MARK: Receive

    @Test("R1: every authenticated message moves the endpoint, even when the packet inside is refused")
    func roaming() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        var port: UInt16 = 9000
        let foreign = InnerPacket.udp(from: v4(10, 99, 0, 1), to: rig.ownAddress, payload: [1])
        for plaintext in [rig.reply(1), [], foreign, [1, 2, 3]] {
            port += 1
            let endpoint = Endpoint(address: v4(198, 51, 100, 7), port: port)
            try rig.receive(session.seal(plaintext), from: endpoint)
            #expect(rig.state.path?.remote == endpoint)
            #expect(try rig.send(rig.packet(1)).map(\.destination) == [endpoint])
            #expect(rig.machine.reports.last == .endpointChanged(rig.peer))
        }
    }

    @Test("R1: what is not authentic, or a copy, moves nothing")
    func noRoaming() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        let elsewhere = Endpoint(address: v4(198, 51, 100, 7), port: 1)
        let message = session.seal(rig.reply(1))
        try rig.receive(message)
        try rig.receive(message, from: elsewhere)
        var forged = session.seal(rig.reply(2))
        forged[20] ^= 1
        try rig.receive(forged, from: elsewhere)
        #expect(rig.state.path?.remote == rig.endpoint)
    }

    @Test("R1: handshake messages move the endpoint once they are authentic")
    func roamingByHandshake() throws {
        let rig = Rig()
        let (first, second) = (
            Endpoint(address: v4(198, 51, 100, 7), port: 1), Endpoint(address: v4(198, 51, 100, 8), port: 2)
        )
        try rig.receive(rig.initiation().message, from: first)
        #expect(try rig.sent().map(\.destination) == [first])
        try rig.advance(6)
        let initiation = try rig.firstSent(for: rig.packet(1))
        try rig.receive(rig.response(to: initiation.bytes).message, from: second)
        #expect(try rig.sent().map(\.destination) == [second])
    }

    @Test("E1: answers leave from the address that was contacted, until the machine loses it")
    func source() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        let path = Path(remote: rig.endpoint, source: LocalSource(address: v4(192, 0, 2, 99), interfaceIndex: 3))
        let message = session.seal(rig.reply(1))
        #expect(rig.receive(MessageTrain(offset: 0, length: message.count), in: message, from: path).count == 1)
        #expect(try rig.send(rig.packet(1)).map(\.source.address) == [v4(192, 0, 2, 99)])
        rig.machine.addresses = [v4(192, 0, 2, 1)]
        #expect(try rig.send(rig.packet(2)).map(\.source.address) == [v4(192, 0, 2, 1)])
        #expect(rig.state.path?.source == nil)
    }

    @Test("E2: sources are forgotten on request and by the handshake that a silent peer calls for")
    func sourceIsForgotten() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        #expect(rig.state.path?.source != nil)
        rig.device.reviewSources { $0.source?.interfaceIndex == 1 }
        #expect(rig.state.path?.source != nil)
        rig.device.reviewSources { _ in false }
        #expect(rig.state.path?.source == nil)
        try rig.receive(session.seal([]))
        #expect(rig.state.path?.source == nil, "what was under way brings a forgotten source back")
        try rig.send(rig.packet(1))
        try rig.receive(session.seal([]))
        #expect(rig.state.path?.source != nil)
        try rig.send(rig.packet(1))
        try rig.advance(15.4)
        #expect(rig.state.path?.source == nil)
    }

    @Test("R2: padding is trimmed; what is no whole IP packet is refused")
    func innerLength() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        #expect(try rig.receive(session.seal(rig.reply(1) + [UInt8](repeating: 9, count: 100))) == [rig.reply(1)])
        var versionZero = rig.reply(1)
        versionZero[0] = 0x05
        let cases: [[UInt8]] = [Array(rig.reply(1).dropLast()), [0x45], versionZero, [UInt8](repeating: 0, count: 16)]
        for bad in cases {
            #expect(try rig.receive(session.seal(bad)).isEmpty)
        }
        #expect(rig.drops(.malformedPacket) == 4)
    }

    @Test("R3: a source address must be this peer's by the longest prefix of all peers")
    func sourceAddress() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        rig.device.addAllowedIP(IPPrefix(address: v4(10, 9, 0, 0), length: 24), for: rig.peer)
        let spoofed = InnerPacket.udp(from: v4(10, 9, 0, 77), to: rig.ownAddress, payload: [1])
        #expect(try rig.receive(session.seal(spoofed)) == [spoofed])
        let other = ReferenceKeyPair(using: &rig.generator)
        let peer = rig.addPeer(other.publicKey)
        rig.device.addAllowedIP(IPPrefix(host: v4(10, 9, 0, 77)), for: peer)
        #expect(try rig.receive(session.seal(spoofed)).isEmpty)
        #expect(rig.drops(.sourceNotAllowed) == 1)
        rig.device.removePeer(peer)
        #expect(try rig.receive(session.seal(spoofed)) == [spoofed])
    }

    @Test("R4: bytes of refused packets are not counted as received")
    func refusedBytes() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        let before = rig.state.receivedBytes
        try rig.receive(session.seal(InnerPacket.udp(from: v4(10, 99, 0, 1), to: rig.ownAddress, payload: [1])))
        try rig.receive(session.seal([1, 2, 3]))
        #expect(rig.state.receivedBytes == before)
    }

    @Test("A1, A2: an allowed IP moves to the peer it is given to, in both directions at once")
    func allowedIPMoves() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        let other = ReferenceKeyPair(using: &rig.generator)
        let peer = rig.addPeer(other.publicKey)
        rig.device.addAllowedIP(IPPrefix(host: rig.remoteAddress), for: peer)
        #expect(try rig.receive(session.seal(rig.reply(1))).isEmpty)
        #expect(rig.drops(.sourceNotAllowed) == 1)
        #expect(try rig.send(rig.packet(1)).isEmpty)
        #expect(rig.drops(.noEndpoint) == 1)
        rig.device.removeAllowedIP(IPPrefix(host: rig.remoteAddress), of: rig.peer)
        rig.device.addAllowedIP(IPPrefix(host: rig.remoteAddress), for: rig.peer)
        #expect(try rig.receive(session.seal(rig.reply(2))).count == 1)
    }

    @Test("R1: a train of 128 messages for one session is taken whole and in order, copies in it dropped")
    func longTrain() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        // Every eighth message is a copy of the one before.
        let counters = (0..<128 as Range<UInt64>).map { $0 % 8 == 7 ? $0 : $0 + 1 }
        let messages = counters.map { session.seal(rig.reply($0), counter: $0) }
        let delivered = rig.receive(
            MessageTrain(offset: 0, count: 128, stride: 68, lastLength: 68), in: messages.flatMap(\.self),
            from: Path(remote: rig.endpoint))
        var expected: [UInt64] = []
        for counter in counters where expected.last != counter { expected.append(counter) }
        #expect(delivered.map { InnerPacket.number(of: $0) } == expected)
        #expect(rig.drops(.replayedCounter) == 16)
    }

    @Test("R1: a train of messages for several sessions, with bad ones among them, is taken message by message")
    func train() throws {
        let rig = Rig()
        var old = try rig.sessionAsResponder()
        try rig.advance(30)
        var new = try rig.sessionAsResponder()
        var messages: [[UInt8]] = []
        for number in 1...100 as ClosedRange<UInt64> {
            switch number % 5 {
            case 0: messages.append(old.seal(rig.reply(number)))
            case 1:
                var forged = new.seal(rig.reply(number))
                forged[30] ^= 1
                messages.append(forged)
            case 2: messages.append([UInt8](repeating: 0xff, count: 68))
            default: messages.append(new.seal(rig.reply(number)))
            }
        }
        messages.append(new.seal([]))
        let delivered = rig.receive(
            MessageTrain(offset: 2, count: 101, stride: 68, lastLength: 32),
            in: [0xaa, 0xbb] + messages.flatMap(\.self),
            from: Path(remote: rig.endpoint))
        let numbers = delivered.map { InnerPacket.number(of: $0) }
        #expect(numbers == (1...100).filter { $0 % 5 != 1 && $0 % 5 != 2 })
        #expect(rig.drops(.notAuthentic) == 20)
        #expect(rig.drops(.malformedMessage) == 20)
    }
}
