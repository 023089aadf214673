import IPPacket
import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

@Suite("Sessions and key rotation")
struct SessionTests {
    @Test("K1: a message is accepted once; a copy is dropped")
    func replay() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        let message = session.seal(rig.reply(1))
        #expect(try rig.receive(message) == [rig.reply(1)])
        #expect(try rig.receive(message).isEmpty)
        #expect(rig.drops(.replayedCounter) == 1)
    }

    @Test("K1: a message 8,128 behind the newest is accepted, one more is not")
    func windowEdge() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        #expect(try rig.receive(session.seal(rig.reply(1), counter: 20_000)).count == 1)
        #expect(try rig.receive(session.seal(rig.reply(2), counter: 20_000 - 8128)).count == 1)
        #expect(try rig.receive(session.seal(rig.reply(3), counter: 20_000 - 8129)).isEmpty)
        #expect(rig.drops(.replayedCounter) == 1)
    }

    @Test("K1: a forged message far ahead does not move the window")
    func forgedCounter() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        var forged = session.seal(rig.reply(1), counter: 1 << 40)
        forged[forged.count - 1] ^= 1
        #expect(try rig.receive(forged).isEmpty)
        #expect(rig.drops(.notAuthentic) == 1)
        #expect(try rig.receive(session.seal(rig.reply(2), counter: 1)).count == 1)
    }

    @Test("K1: messages of a window's length arrive in any order, each once")
    func shuffled() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        var messages = (1...4000).map { session.seal(rig.reply(UInt64($0)), counter: UInt64($0)) }
        messages += messages.prefix(500)
        messages.shuffle(using: &rig.generator)
        for message in messages { try rig.receive(message) }
        let numbers = rig.machine.delivered.map { InnerPacket.number(of: $0) }
        #expect(numbers.count == 4000)
        #expect(Set(numbers) == Set(1...4000))
    }

    @Test("K2: the initiator sends on a new session at once and still accepts the old one")
    func initiatorRotation() throws {
        let rig = Rig()
        var old = try rig.sessionAsInitiator()
        try rig.advance(121)
        let sent = try rig.send(rig.packet(1))
        #expect(sent.kinds == [.data, .initiation])
        let (response, new) = try rig.response(to: sent[1].bytes)
        try rig.receive(response)
        let confirmation = try rig.firstSent()
        #expect(new.open(confirmation.bytes) != nil)
        #expect(try rig.receive(old.seal(rig.reply(1))).count == 1)
        #expect(try new.open(rig.firstSent(for: rig.packet(2)).bytes) != nil)
    }

    @Test("K2: an unconfirmed session that was answered becomes the previous one, and the current one is dropped")
    func initiatorRotationWithNext() throws {
        let rig = Rig()
        var current = try rig.sessionAsInitiator()
        try rig.advance(121)
        var next = try rig.handshakeAsResponder()
        try rig.advance(6)
        let sent = try rig.send(rig.packet(1))
        #expect(sent.kinds == [.data, .initiation])
        #expect(current.open(sent[0].bytes) != nil)
        let (response, _) = try rig.response(to: sent[1].bytes)
        try rig.receive(response)
        #expect(try rig.receive(current.seal(rig.reply(1))).isEmpty)
        #expect(rig.drops(.unknownReceiver) == 1)
        #expect(try rig.receive(next.seal(rig.reply(2))).count == 1)
    }

    @Test("K3: the responder never sends on a session before its initiator used it")
    func responderWaitsForConfirmation() throws {
        let rig = Rig()
        let old = try rig.sessionAsResponder()
        try rig.advance(30)
        var new = try rig.handshakeAsResponder()
        #expect(try old.open(rig.firstSent(for: rig.packet(1)).bytes) != nil)
        let handshakeTime = rig.network.clock.wallClock
        try rig.receive(new.seal([]))
        #expect(rig.state.lastHandshake == handshakeTime)
        #expect(try new.open(rig.firstSent(for: rig.packet(2)).bytes) != nil)
    }

    @Test("U3: the time of the last handshake is listed in UNIX time, and the bytes of whole messages")
    func listedStatistics() throws {
        let rig = Rig()
        try rig.advance(1.5)
        _ = try rig.sessionAsResponder()
        var listing = ConfigurationListing()
        var output: [UInt8] = []
        while listing.appendNext(of: rig.machine.device, to: &output, interfaceName: { _ in nil }) {}
        let lines = String(decoding: output, as: UTF8.self).split(separator: "\n")
        #expect(lines.contains("last_handshake_time_sec=1750000001"))
        #expect(lines.contains("last_handshake_time_nsec=500000000"))
        #expect(lines.contains("rx_bytes=180"), "an initiation and an empty message")
        #expect(lines.contains("tx_bytes=92"), "a response")
        #expect(lines.contains("endpoint=192.0.2.2:7000"))
    }

    @Test("K3: packets that waited are sent in order when the initiator uses the session")
    func responderFlushes() throws {
        let rig = Rig(hasEndpoint: false)
        var session = try rig.handshakeAsResponder()
        for number in 1...5 { #expect(try rig.send(rig.packet(UInt64(number))).isEmpty) }
        try rig.receive(session.seal([]))
        let opened = try rig.sent().map { try #require(session.open($0.bytes)) }
        #expect(opened.map(\.counter) == [0, 1, 2, 3, 4])
        #expect(opened.map { Array($0.plaintext.prefix(36)) } == (1...5).map { rig.packet($0) })
        #expect(rig.machine.reports.filter { $0 == .handshakeCompleted(rig.peer) }.count == 1)
    }

    @Test("K3: answering a second handshake drops the session that nobody confirmed")
    func unconfirmedSessionIsReplaced() throws {
        let rig = Rig()
        var first = try rig.handshakeAsResponder()
        try rig.advance(1)
        var second = try rig.handshakeAsResponder()
        #expect(try rig.receive(first.seal(rig.reply(1))).isEmpty)
        #expect(try rig.receive(second.seal(rig.reply(2))).count == 1)
        #expect(rig.indexCount == 1)
    }

    @Test("K4: a message under the previous session is accepted until that is 180 s old")
    func previousSession() throws {
        let rig = Rig()
        var old = try rig.sessionAsResponder()
        try rig.advance(120)
        _ = try rig.sessionAsResponder()
        try rig.advance(60 - nanosecond)
        #expect(try rig.receive(old.seal(rig.reply(1))).count == 1)
        try rig.advance(nanosecond)
        #expect(try rig.receive(old.seal(rig.reply(2))).isEmpty)
        #expect(rig.drops(.expiredSession) == 1)
    }

    @Test(
        "K5: a new private key ends all sessions and starts a handshake at once when packets wait or keepalives are on")
    func privateKeyChange() throws {
        let rig = Rig()
        var session = try rig.sessionAsInitiator()
        rig.setKeepalive(25)
        let key = ReferenceKeyPair(using: &rig.generator)
        rig.setPrivateKey(key.privateKey)
        let initiation = try rig.firstSent()
        #expect(ReferenceResponder(own: rig.remote, initiation.bytes)?.initiator == key.publicKey)
        #expect(try rig.receive(session.seal(rig.reply(1))).isEmpty)
        #expect(rig.drops(.unknownReceiver) == 1)
        let (response, _) = try #require(ReferenceResponder(own: rig.remote, initiation.bytes)).respond(
            presharedKey: rig.presharedKey, index: 7, ephemeral: ReferenceKeyPair(using: &rig.generator))
        try rig.receive(response)
        #expect(try rig.sent().kinds == [.keepalive])
    }

    @Test("K5: setting the private key that the device has already leaves its sessions alone")
    func samePrivateKey() throws {
        let rig = Rig()
        var session = try rig.sessionAsInitiator()
        var unclamped = rig.own.privateKey
        rig.setPrivateKey(unclamped)
        unclamped[0] ^= 7
        unclamped[31] ^= 0xc0
        rig.setPrivateKey(unclamped)
        #expect(try rig.receive(session.seal(rig.reply(1))).count == 1)
        #expect(try rig.send(rig.packet(1)).kinds == [.data])
    }

    @Test("K5: a peer with the device's own key is removed when the key is set, and not added afterwards")
    func ownPublicKey() throws {
        let rig = Rig()
        rig.setPrivateKey(rig.remote.privateKey)
        let publicKey = rig.remote.publicKey
        let key = PublicKey(publicKey.octets)
        let (known, added) = (rig.machine.device.peerIndex(of: key), rig.machine.device.addPeer(key))
        #expect(known == nil && added == nil)
        #expect(try rig.send(rig.packet(1)).isEmpty)
        #expect(rig.drops(.noPeer) == 1)
    }

    @Test("K6: a link that goes down ends all sessions and drops what comes")
    func linkDown() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        rig.setKeepalive(25)
        rig.device.setLink(up: false, at: rig.now)
        #expect(try rig.send(rig.packet(1)).isEmpty)
        #expect(try rig.receive(session.seal(rig.reply(1))).isEmpty)
        #expect(try rig.receive(rig.initiation().message).isEmpty)
        #expect(rig.drops(.linkDown) == 3)
        try rig.advance(1000)
        #expect(try rig.sent().isEmpty)
        #expect(rig.nextDeadline() == nil)
        #expect(rig.indexCount == 0)
        // Up again: the peer with keepalives is called at once.
        rig.device.setLink(up: true, at: rig.now)
        #expect(try rig.sent().kinds == [.initiation])
    }

    @Test("K6: without keepalives nothing is sent when the link comes up")
    func linkUp() throws {
        let rig = Rig()
        rig.device.setLink(up: false, at: rig.now)
        rig.device.setLink(up: true, at: rig.now)
        try rig.advance(1000)
        #expect(try rig.sent().isEmpty)
    }

    @Test("1.17: nothing is sent without a private key")
    func noPrivateKey() throws {
        let rig = Rig()
        rig.setKeepalive(1)
        rig.device.removePrivateKey(at: rig.now)
        rig.device.peerConfigured(rig.peer, startsKeepalives: true)
        #expect(try rig.send(rig.packet(1)).isEmpty)
        try rig.advance(300)
        #expect(try rig.sent().isEmpty)
        #expect(try rig.receive(rig.initiation().message).isEmpty)
        #expect(rig.drops(.invalidMAC1) == 1)
        // As soon as it is set, the handshake starts.
        rig.setPrivateKey(rig.own.privateKey)
        #expect(try rig.sent().kinds == [.initiation])
    }

    @Test("1.17: removing a peer drops its sessions, its packets and its timers")
    func peerRemoval() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        try rig.receive(session.seal(rig.reply(1)))
        rig.device.removePeer(rig.peer)
        #expect(try rig.receive(session.seal(rig.reply(2))).isEmpty)
        #expect(rig.drops(.unknownReceiver) == 1)
        try rig.advance(1000)
        #expect(try rig.sent().isEmpty)
        #expect(rig.nextDeadline() == nil)
        #expect(rig.indexCount == 0)
    }
}
