import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

@Suite("Handshake")
struct HandshakeTests {
    @Test("M1: every byte of an initiation is where the paper puts it")
    func initiationLayout() throws {
        let rig = Rig()
        let sent = try rig.send(rig.packet(1))
        let bytes = try #require(sent.first).bytes
        #expect(bytes.count == 148)
        #expect(Array(bytes[0..<4]) == [1, 0, 0, 0])
        // The reference opens the fields at 8, 40 and 88 with its own key schedule.
        let responder = try #require(ReferenceResponder(own: rig.remote, bytes))
        #expect(responder.initiator == rig.own.publicKey)
        #expect(responder.timestamp == Rig.timestamp(1_750_000_000))
        let key = Reference.hash(Array("mac1----".utf8), rig.remote.publicKey)
        #expect(Array(bytes[116..<132]) == Reference.mac(key, Array(bytes[..<116])))
        #expect(Array(bytes[132...]) == [UInt8](repeating: 0, count: 16))
        #expect(sent[0].destination == rig.endpoint)
    }

    @Test("M1: every byte of a response is where the paper puts it")
    func responseLayout() throws {
        let rig = Rig()
        let initiator = rig.initiation()
        try rig.receive(initiator.message)
        let bytes = try rig.firstSent().bytes
        #expect(bytes.count == 92)
        #expect(Array(bytes[0..<4]) == [2, 0, 0, 0])
        #expect(Array(bytes[8..<12]) == Reference.littleEndian(initiator.index))
        let session = try #require(initiator.finish(bytes))
        #expect(session.remoteIndex == Reference.integer32(bytes[4..<8]))
        let key = Reference.hash(Array("mac1----".utf8), rig.remote.publicKey)
        #expect(Array(bytes[60..<76]) == Reference.mac(key, Array(bytes[..<60])))
        #expect(Array(bytes[76...]) == [UInt8](repeating: 0, count: 16))
    }

    @Test("M1: a wrong length, an unknown type and a reserved byte are dropped without an answer")
    func malformed() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        try rig.advance(1)
        let initiation = rig.initiation().message
        let data = session.seal(rig.reply(1))
        var bad: [[UInt8]] = [[], [1], [1, 0, 0], [4, 0, 0, 0], Array(data[..<31]), initiation + [0]]
        bad.append(Array(initiation.dropLast()))
        for type: UInt8 in [0, 5, 255] { bad.append([type] + initiation.dropFirst()) }
        for (message, offset) in [(initiation, 1), (initiation, 3), (data, 2)] {
            var message = message
            message[offset] = 1
            bad.append(message)
        }
        bad += [[2] + initiation.dropFirst(), [3] + initiation.dropFirst()]
        for message in bad { #expect(try rig.receive(message).isEmpty) }
        #expect(try rig.sent().isEmpty)
        #expect(rig.drops(.malformedMessage) == UInt64(bad.count))
        // Nothing changed: the untouched messages are taken.
        #expect(try rig.receive(data).count == 1)
        try rig.receive(initiation)
        #expect(try rig.sent().kinds == [.response])
    }

    @Test("M2: datagrams of every length up to 65,535 bytes are survived")
    func lengths() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        for length in [0, 3, 4, 32, 63, 64, 65, 91, 92, 93, 147, 148, 149, 2000, 65_507, 65_535] {
            for type in 0...5 as ClosedRange<UInt8> {
                var datagram = rig.generator.bytes(length)
                for (offset, byte) in [type, 0, 0, 0].enumerated() where offset < length { datagram[offset] = byte }
                #expect(try rig.receive(datagram).isEmpty)
            }
        }
        let packet = InnerPacket.udp(
            from: rig.remoteAddress, to: rig.ownAddress, payload: [UInt8](repeating: 7, count: 65_000))
        #expect(try rig.receive(session.seal(packet)) == [packet])
    }

    @Test("M3: session indices look random and are not reused")
    func indices() throws {
        let rig = Rig()
        var seen: Set<UInt32> = []
        for _ in 0..<200 {
            seen.insert(try rig.sessionAsResponder().remoteIndex)
            try rig.advance(1)
        }
        #expect(seen.count == 200)
        let ones = seen.map(\.nonzeroBitCount).reduce(0, +)
        #expect((2900...3500).contains(ones), "200 numbers of 32 bits have about 3,200 ones")
    }

    @Test(
        "N1: the device and the reference agree on keys in both roles, with and without a preshared key",
        arguments: [
            (true, false), (true, true), (false, false), (false, true),
        ])
    func agreement(isInitiator: Bool, hasPresharedKey: Bool) throws {
        let rig = Rig(seed: isInitiator ? 3 : 4)
        if hasPresharedKey {
            rig.setPresharedKey(rig.generator.bytes(32))
        }
        var session = try isInitiator ? rig.sessionAsInitiator() : rig.sessionAsResponder()
        #expect(try rig.receive(session.seal(rig.reply(1))) == [rig.reply(1)])
        let opened = try #require(try session.open(rig.firstSent(for: rig.packet(1)).bytes))
        #expect(opened.plaintext == rig.packet(1) + [UInt8](repeating: 0, count: 12))
    }

    @Test("N1: a second copy of a response is dropped, and so is a response to nothing")
    func responseTwice() throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(1))
        let (response, session) = try rig.response(to: initiation.bytes)
        try rig.receive(response)
        #expect(try rig.sent().kinds == [.data])
        try rig.receive(response)
        #expect(try rig.sent().isEmpty)
        #expect(rig.drops(.invalidHandshake) == 1)
        #expect(try session.open(rig.firstSent(for: rig.packet(2)).bytes) != nil)
    }

    @Test("N1: a response that does not authenticate leaves the handshake waiting")
    func wrongResponse() throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(1))
        let (response, session) = try rig.response(to: initiation.bytes)
        var body = Array(response[..<60])
        body[50] ^= 1
        try rig.receive(authenticated(body, for: rig.own.publicKey, cookie: nil))
        #expect(rig.drops(.invalidHandshake) == 1)
        // A response to an earlier initiation of a retry is refused too.
        try rig.receive(response)
        #expect(try session.open(rig.firstSent().bytes) != nil)
    }

    @Test("N1: a response counts only for the initiation sent last")
    func responseToOlderInitiation() throws {
        let rig = Rig()
        let first = try rig.firstSent(for: rig.packet(1))
        let (late, _) = try rig.response(to: first.bytes)
        try rig.advance(5.4)
        let second = try rig.firstSent()
        try rig.receive(late)
        #expect(rig.drops(.invalidHandshake) == 1)
        try rig.receive(rig.response(to: second.bytes).message)
        #expect(try rig.sent().kinds == [.data])
    }

    @Test("N1: a response that takes 4.9 s is still taken")
    func lateResponse() throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(1))
        try rig.advance(4.9)
        try rig.receive(rig.response(to: initiation.bytes).message)
        #expect(try rig.sent().kinds == [.data])
    }

    @Test("N2: the ephemeral key and the chaining key are gone once the session is made")
    func ephemeralKeysAreGone() throws {
        let rig = Rig()
        #expect(rig.state.handshake.localIndex == nil)
        try rig.send(rig.packet(1))
        #expect(rig.state.handshake.localIndex != nil)
        _ = try rig.sessionAsResponder()
        #expect(rig.state.handshake.localIndex == nil)
    }

    @Test("N3: a new preshared key counts from the next handshake on; the live session goes on")
    func presharedKeyChange() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        let old = rig.presharedKey
        rig.setPresharedKey(rig.generator.bytes(32))
        #expect(try rig.receive(session.seal(rig.reply(1))).count == 1)
        #expect(try rig.send(rig.packet(1)).kinds == [.data])
        try rig.advance(30)
        var new = try rig.sessionAsResponder()
        #expect(try rig.receive(new.seal(rig.reply(2))).count == 1)
        // With the old key the response does not authenticate.
        rig.presharedKey = old
        try rig.advance(30)
        let initiator = rig.initiation()
        try rig.receive(initiator.message)
        let response = try #require(try rig.sent().first { MessageKind(of: $0.bytes) == .response })
        #expect(initiator.finish(response.bytes) == nil)
    }

    @Test("N5: an initiation from a key that is no peer's is dropped in silence")
    func stranger() throws {
        let rig = Rig()
        try rig.receive(rig.initiation(own: ReferenceKeyPair(using: &rig.generator)).message)
        #expect(try rig.sent().isEmpty)
        #expect(rig.drops(.invalidHandshake) == 1)
    }

    @Test("N5: an initiation that does not authenticate is dropped in silence", arguments: [10, 45, 90])
    func forgedInitiation(offset: Int) throws {
        let rig = Rig()
        var body = Array(rig.initiation().message[..<116])
        body[offset] ^= 1
        try rig.receive(authenticated(body, for: rig.own.publicKey, cookie: nil))
        #expect(try rig.sent().isEmpty)
        #expect(rig.drops(.invalidHandshake) == 1)
        _ = try rig.sessionAsResponder()
    }

    /// Points whose product with any scalar of X25519 is zero (RFC 7748, section 7; the list of Bernstein's page on
    /// Curve25519).
    static let lowOrderKeys: [[UInt8]] = [
        [UInt8](repeating: 0, count: 32),
        [1] + [UInt8](repeating: 0, count: 31),
        hex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
        hex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
        hex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
        hex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
        hex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    ]

    @Test("P3: an initiation with an ephemeral key of low order is refused", arguments: lowOrderKeys)
    func lowOrderInitiation(key: [UInt8]) throws {
        let rig = Rig()
        try rig.receive(rig.initiation(claimedEphemeral: key).message)
        #expect(try rig.sent().isEmpty)
        #expect(rig.drops(.invalidHandshake) == 1)
    }

    @Test("P3, 1.17: a response with an ephemeral key of low order is refused", arguments: lowOrderKeys)
    func lowOrderResponse(key: [UInt8]) throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(1))
        try rig.receive(rig.response(to: initiation.bytes, claimedEphemeral: key).message)
        #expect(try rig.sent().isEmpty)
        #expect(rig.drops(.invalidHandshake) == 1)
        try rig.receive(rig.response(to: initiation.bytes).message)
        #expect(try rig.sent().kinds == [.data])
    }

    @Test("P3: nothing is ever sent to a peer whose public key is of low order", arguments: lowOrderKeys)
    func lowOrderPeer(key: [UInt8]) throws {
        let rig = Rig()
        let peer = rig.addPeer(key)
        rig.device.setEndpoint(rig.endpoint, of: peer)
        _ = rig.machine.device.setPersistentKeepalive(.seconds(1), of: peer, at: rig.now)
        rig.device.peerConfigured(peer, startsKeepalives: true)
        try rig.advance(100)
        #expect(try rig.sent().isEmpty)
    }

    @Test("T2: an initiation must have a later time stamp than those before")
    func timestamps() throws {
        let rig = Rig()
        try rig.receive(rig.initiation(timestamp: Rig.timestamp(2_000_000_000, 5)).message)
        #expect(try rig.sent().kinds == [.response])
        for stamp in [
            Rig.timestamp(2_000_000_000, 5), Rig.timestamp(2_000_000_000, 4), Rig.timestamp(1_999_999_999, 999_999_999),
            [UInt8](repeating: 0, count: 12),
        ] {
            try rig.advance(1)
            try rig.receive(rig.initiation(timestamp: stamp).message)
            #expect(try rig.sent().isEmpty)
        }
        #expect(rig.drops(.replayedInitiation) == 4)
        #expect(rig.machine.reports.contains(.initiationReplayed(rig.peer)))
        try rig.advance(1)
        try rig.receive(rig.initiation(timestamp: Rig.timestamp(2_000_000_000, 6)).message)
        #expect(try rig.sent().kinds == [.response])
        // The bytes are compared, whatever they mean.
        try rig.advance(1)
        try rig.receive(rig.initiation(timestamp: [UInt8](repeating: 255, count: 12)).message)
        #expect(try rig.sent().kinds == [.response])
    }

    @Test("T2: a copy of an initiation is dropped and changes nothing")
    func replayedInitiation() throws {
        let rig = Rig()
        let initiator = rig.initiation()
        try rig.receive(initiator.message)
        let response = try rig.firstSent()
        try rig.advance(1)
        let elsewhere = Endpoint(address: v4(198, 51, 100, 1), port: 1)
        try rig.receive(initiator.message, from: elsewhere)
        #expect(try rig.sent().isEmpty)
        #expect(rig.state.path?.remote == rig.endpoint)
        var session = try #require(initiator.finish(response.bytes))
        #expect(try rig.receive(session.seal(rig.reply(1))).count == 1)
    }

    @Test("T3: one initiation of a peer is taken in 20 ms")
    func initiationRate() throws {
        let rig = Rig()
        var responses = 0
        for _ in 0..<100 {
            try rig.receive(rig.initiation().message)
            responses += try rig.sent().count
            try rig.advance(0.005)
        }
        #expect(responses == 25)
        #expect(rig.drops(.replayedInitiation) == 75)
    }

    @Test("T4: a peer whose clock stepped back is refused until it caught up, and the case is reported")
    func clockStepsBack() throws {
        let rig = Rig()
        try rig.receive(rig.initiation(timestamp: Rig.timestamp(1_750_003_600)).message)
        _ = try rig.sent()
        try rig.advance(10)
        try rig.receive(rig.initiation(timestamp: Rig.timestamp(1_750_000_010)).message)
        #expect(try rig.sent().isEmpty)
        #expect(rig.machine.reports.last == .initiationReplayed(rig.peer))
        try rig.receive(rig.initiation(timestamp: Rig.timestamp(1_750_003_601)).message)
        #expect(try rig.sent().kinds == [.response])
    }

    @Test("T4: the device's own stamps go on rising when its wall clock steps back")
    func ownStampsRise() throws {
        let rig = Rig()
        var stamps: [[UInt8]] = []
        rig.network.send(rig.packet(1), from: rig.machine)
        try rig.advance(11)
        rig.network.setWallClock(WallClockTime(seconds: 1_600_000_000, nanoseconds: 0))
        try rig.advance(50)
        rig.network.setWallClock(WallClockTime(seconds: 0, nanoseconds: 0))
        try rig.advance(20)
        for datagram in try rig.sent() {
            stamps.append(try #require(ReferenceResponder(own: rig.remote, datagram.bytes)).timestamp)
        }
        #expect(stamps.count > 12)
        for (earlier, later) in zip(stamps, stamps.dropFirst()) { #expect(earlier.lexicographicallyPrecedes(later)) }
    }

    @Test("1.6: a device without sessions that answered keeps nothing but the session")
    func answeringEndsOwnHandshake() throws {
        let rig = Rig()
        try rig.send(rig.packet(1))
        #expect(rig.indexCount == 1)
        _ = try rig.handshakeAsResponder()
        #expect(rig.indexCount == 1)
    }
}
