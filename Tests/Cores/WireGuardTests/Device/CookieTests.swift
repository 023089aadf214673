import IPPacket
import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

@Suite("Cookies and load")
struct CookieTests {
    /// Fills the device's queue with as many initiations as put it under load, without letting it work, and forgets the
    /// answers. The kernel's number: an eighth of 4,096.
    private func putUnderLoad(_ rig: Rig) throws {
        let stranger = ReferenceKeyPair(using: &rig.generator)
        let initiation = rig.initiation(own: stranger).message
        for port in 1...512 as ClosedRange<UInt16> {
            rig.network.inject(
                initiation, from: Endpoint(address: v4(203, 0, 113, 9), port: port), to: rig.machine)
        }
        _ = try rig.sent()
    }

    private func cookie(in reply: SimulatedDatagram, to message: [UInt8], mac1: Int, _ rig: Rig) throws -> [UInt8] {
        #expect(Array(reply.bytes[4..<8]) == Array(message[4..<8]))
        return try #require(
            openCookieReply(
                reply.bytes, mac1: Array(message[mac1..<mac1 + 16]), responder: rig.own.publicKey))
    }

    @Test("C1: a message with a wrong first code is dropped in silence, under load too")
    func wrongMAC1() throws {
        let rig = Rig()
        for isUnderLoad in [false, true] {
            if isUnderLoad { try putUnderLoad(rig) }
            let before = rig.drops(.invalidMAC1)
            var message = rig.initiation().message
            message[120] ^= 1
            try rig.receive(message)
            // The right code for another recipient.
            let other = ReferenceKeyPair(using: &rig.generator).publicKey
            try rig.receive(authenticated(Array(message[..<116]), for: other, cookie: nil))
            #expect(try rig.sent().isEmpty)
            #expect(rig.drops(.invalidMAC1) - before == 2)
        }
    }

    @Test("C2: the second code is not looked at when the device is not under load")
    func mac2WithoutLoad() throws {
        let rig = Rig()
        var message = rig.initiation().message
        for offset in 132..<148 { message[offset] = 0xaa }
        try rig.receive(message)
        #expect(try rig.sent().kinds == [.response])
    }

    @Test("C3, C4: under load an initiation is answered by a cookie of its address and port")
    func cookiePerAddress() throws {
        let rig = Rig()
        try putUnderLoad(rig)
        var cookies: [[UInt8]] = []
        for endpoint in [
            Endpoint(address: v4(192, 0, 2, 2), port: 7000), Endpoint(address: v4(192, 0, 2, 2), port: 7001),
            Endpoint(address: v4(192, 0, 2, 3), port: 7000), Endpoint(address: v4(192, 0, 2, 2), port: 7000),
        ] {
            let message = rig.initiation().message
            try rig.receive(message, from: endpoint)
            let sent = try rig.sent()
            #expect(sent.kinds == [.cookieReply])
            let reply = try #require(sent.first)
            #expect(reply.bytes.count == 64)
            #expect(reply.destination == endpoint)
            cookies.append(try cookie(in: reply, to: message, mac1: 116, rig))
        }
        #expect(Set(cookies).count == 3)
        #expect(cookies[0] == cookies[3])
    }

    @Test("C3: the cookie of an address changes every 120 s")
    func secretChanges() throws {
        let rig = Rig()
        var cookies: [[UInt8]] = []
        for wait in [0, 119.5, 0.5] {
            try rig.advance(wait)
            try putUnderLoad(rig)
            let message = rig.initiation().message
            try rig.receive(message)
            cookies.append(try cookie(in: rig.firstSent(), to: message, mac1: 116, rig))
        }
        #expect(cookies[0] == cookies[1])
        #expect(cookies[1] != cookies[2])
    }

    @Test("C4: no two cookie replies have one nonce")
    func nonces() throws {
        let rig = Rig()
        try putUnderLoad(rig)
        var nonces: Set<[UInt8]> = []
        for _ in 0..<50 {
            try rig.receive(rig.initiation().message)
            nonces.insert(Array(try rig.firstSent().bytes[8..<32]))
        }
        #expect(nonces.count == 50)
    }

    @Test("C5: under load an initiation with the cookie's code is answered by a response")
    func mac2() throws {
        let rig = Rig()
        try putUnderLoad(rig)
        let message = rig.initiation().message
        try rig.receive(message)
        let cookie = try cookie(in: rig.firstSent(), to: message, mac1: 116, rig)
        let retry = rig.initiation(cookie: cookie)
        // Not from another port.
        try rig.receive(retry.message, from: Endpoint(address: v4(192, 0, 2, 2), port: 7001))
        #expect(try rig.sent().kinds == [.cookieReply])
        try rig.receive(retry.message)
        let response = try rig.firstSent()
        #expect(initiatorFinishes(retry, response))
    }

    private func initiatorFinishes(_ initiator: ReferenceInitiator, _ response: SimulatedDatagram) -> Bool {
        initiator.finish(response.bytes) != nil
    }

    @Test("C5: under load a response without the cookie's code is answered by a cookie, and then taken with it")
    func responseUnderLoad() throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(1))
        try putUnderLoad(rig)
        let (response, _) = try rig.response(to: initiation.bytes)
        try rig.receive(response)
        let reply = try rig.firstSent()
        let cookie = try cookie(in: reply, to: response, mac1: 60, rig)
        let (second, session) = try rig.response(to: initiation.bytes, cookie: cookie)
        try rig.receive(second)
        #expect(try session.open(rig.firstSent().bytes) != nil)
    }

    @Test("C6: under load a source with a valid cookie gets 5 handshakes at once and 20 a second")
    func rateLimit() throws {
        let rig = Rig()
        let stranger = ReferenceKeyPair(using: &rig.generator)
        try putUnderLoad(rig)
        let message = rig.initiation().message
        try rig.receive(message)
        let cookie = try cookie(in: rig.firstSent(), to: message, mac1: 116, rig)
        try rig.advance(0.9)
        let before = rig.drops(.rateLimited)
        func tries(_ count: Int) throws -> UInt64 {
            let before = rig.drops(.rateLimited)
            for _ in 0..<count { try rig.receive(rig.initiation(cookie: cookie, own: stranger).message) }
            return UInt64(count) - (rig.drops(.rateLimited) - before)
        }
        #expect(before == 0)
        #expect(try tries(12) == 5)
        try putUnderLoad(rig)
        try rig.advance(0.5)
        #expect(try tries(20) == 5, "half a second is worth ten, but no more than five are saved up")
        try rig.advance(0.1)
        #expect(try tries(20) == 2)
    }

    @Test("C6: sources are limited each on their own: IPv4 by address, IPv6 by /64")
    func rateLimitBySource() throws {
        var limiter = HandshakeRateLimiter()
        let now = Instant(nanoseconds: 1_000_000_000_000)
        for host in 1...200 as ClosedRange<UInt8> {
            let allowed = (0..<9).map { _ in limiter.allows(v4(192, 0, 2, host), at: now) }
            #expect(allowed == [true, true, true, true, true, false, false, false, false])
        }
        let network = try IPv6Address(parsing: "2001:db8:1:2::")
        var allowed = 0
        for host in 1...100 as ClosedRange<UInt64> {
            if limiter.allows(.v6(IPv6Address(high: network.high, low: host)), at: now) { allowed += 1 }
        }
        #expect(allowed == 5)
        let isNeighborAllowed = limiter.allows(.v6(IPv6Address(high: network.high + 1, low: 1)), at: now)
        #expect(isNeighborAllowed)
        // Forgotten after a second of silence.
        let later = now + .milliseconds(1001)
        let allowedLater = (0..<7).map { _ in limiter.allows(v4(192, 0, 2, 1), at: later) }
        #expect(allowedLater == [true, true, true, true, true, false, false])
    }

    @Test("C7: the device is under load from 512 queued handshakes on, and for a second after")
    func underLoad() throws {
        let rig = Rig()
        let stranger = ReferenceKeyPair(using: &rig.generator)
        let initiation = rig.initiation(own: stranger).message
        for _ in 0..<511 { rig.network.inject(initiation, from: rig.endpoint, to: rig.machine) }
        #expect(try rig.sent().isEmpty)
        for _ in 0..<512 { rig.network.inject(initiation, from: rig.endpoint, to: rig.machine) }
        #expect(try rig.sent().kinds.allSatisfy { $0 == .cookieReply })
        try rig.advance(1 - nanosecond)
        try rig.receive(rig.initiation().message)
        #expect(try rig.sent().kinds == [.cookieReply])
        try rig.advance(nanosecond)
        try rig.receive(rig.initiation().message)
        #expect(try rig.sent().kinds == [.response])
    }

    @Test("C7: no more than 4,096 handshakes wait")
    func queueFull() throws {
        let rig = Rig()
        let initiation = rig.initiation().message
        for _ in 0..<5000 { rig.network.inject(initiation, from: rig.endpoint, to: rig.machine) }
        #expect(rig.drops(.handshakeQueueFull) == 5000 - 4096)
        #expect(try rig.sent().count == 4096)
    }

    @Test("C8: a cookie is used in the next retry, not at once, and for 115 s")
    func cookieIsUsed() throws {
        let rig = Rig()
        let cookie = rig.generator.bytes(16)
        let first = try rig.firstSent(for: rig.packet(1)).bytes
        try rig.receive(
            cookieReply(
                to: first, mac1: 116, cookie: cookie, responder: rig.remote.publicKey, nonce: rig.generator.bytes(24)))
        #expect(try rig.sent().isEmpty)
        let received = rig.elapsed
        try rig.send(rig.packet(2))
        try rig.advance(140)
        var used = 0
        for datagram in try rig.sent() {
            let expected = Reference.mac(cookie, Array(datagram.bytes[..<132]))
            let isFresh = rig.time(of: datagram) - received < Paper.cookieLifetime - 5
            #expect((Array(datagram.bytes[132...]) == expected) == isFresh)
            if !isFresh { #expect(Array(datagram.bytes[132...]) == [UInt8](repeating: 0, count: 16)) }
            if isFresh { used += 1 }
        }
        #expect(used > 10)
    }

    @Test("C8: one reply is taken for each message; it must answer the one sent last")
    func cookieReplyRules() throws {
        let rig = Rig()
        let (right, wrong) = (rig.generator.bytes(16), rig.generator.bytes(16))
        func reply(_ message: [UInt8], _ cookie: [UInt8], from key: [UInt8]? = nil) -> [UInt8] {
            cookieReply(
                to: message, mac1: 116, cookie: cookie, responder: key ?? rig.remote.publicKey,
                nonce: rig.generator.bytes(24))
        }
        let first = try rig.firstSent(for: rig.packet(1)).bytes
        try rig.receive(reply(first, wrong, from: rig.own.publicKey))
        var otherIndex = reply(first, wrong)
        otherIndex[4] ^= 1
        try rig.receive(otherIndex)
        #expect(rig.drops(.invalidCookieReply) == 2)
        try rig.advance(5.4)
        let second = try rig.firstSent().bytes
        #expect(Array(second[132...]) == [UInt8](repeating: 0, count: 16))
        // Answers the first message, but with the second one's index.
        var late = reply(first, wrong)
        late.replaceSubrange(4..<8, with: second[4..<8])
        try rig.receive(late)
        #expect(rig.drops(.invalidCookieReply) == 3)
        try rig.receive(reply(second, right))
        try rig.receive(reply(second, wrong))
        #expect(rig.drops(.invalidCookieReply) == 4)
        try rig.advance(5.4)
        let third = try rig.firstSent().bytes
        #expect(Array(third[132...]) == Reference.mac(right, Array(third[..<132])))
    }

    @Test("C9: a cookie reply neither moves the endpoint nor counts as heard from")
    func cookieReplyDoesNotRoam() throws {
        let rig = Rig()
        rig.setKeepalive(25)
        let first = try rig.firstSent(for: rig.packet(1)).bytes
        let before = (rig.nextDeadline(), rig.state.receivedBytes)
        try rig.advance(1)
        let elsewhere = Endpoint(address: v4(198, 51, 100, 1), port: 1)
        try rig.receive(
            cookieReply(
                to: first, mac1: 116, cookie: rig.generator.bytes(16), responder: rig.remote.publicKey,
                nonce: rig.generator.bytes(24)), from: elsewhere)
        #expect(rig.drops(.invalidCookieReply) == 0)
        #expect(rig.state.path?.remote == rig.endpoint)
        #expect(rig.nextDeadline() == before.0)
        #expect(rig.state.receivedBytes == before.1)
    }
}
