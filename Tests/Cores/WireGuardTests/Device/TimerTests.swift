import Provider
import SimulatedHost
import Testing

@testable import WireGuard

@Suite("Timers")
struct TimerTests {
    @Test(
        "W1: an unanswered initiation is sent 20 times, 5 s plus up to 333 ms of jitter apart, then packets are dropped"
    )
    func retransmission() throws {
        let rig = Rig()
        let first = try rig.send(rig.packet(1))
        #expect(first.kinds == [.initiation])
        try rig.advance(200)
        let retries = try rig.sent()
        #expect(retries.count == Paper.handshakeTries - 1)
        var previous: Double = 0
        var gaps: [Double] = []
        for retry in retries {
            #expect(MessageKind(of: retry.bytes) == .initiation)
            gaps.append(rig.time(of: retry) - previous)
            previous = rig.time(of: retry)
        }
        #expect(gaps.allSatisfy { $0 >= Paper.rekeyTimeout - nanosecond })
        #expect(gaps.allSatisfy { $0 <= Paper.rekeyTimeout + Paper.jitter + nanosecond })
        #expect(Set(gaps).count > 10, "the jitter differs from try to try")
        #expect(previous >= Paper.rekeyAttemptTime)
        #expect(rig.drops(.stagedPacketDropped) == 1)
        #expect(rig.machine.reports == [.handshakeGivenUp(rig.peer)])
        // What is left is the wiping of keys, 540 s after giving up.
        let givenUp = try #require(rig.network.log.last { $0.kind == .reported(.handshakeGivenUp(rig.peer)) })
        #expect(rig.nextDeadline() == givenUp.time + seconds(540))
    }

    @Test("W1: every retry lets the kernel choose the source address again")
    func retrySource() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        // The peer contacted the device's second address.
        let other = Endpoint(address: v4(192, 0, 2, 99), port: 51820)
        rig.machine.addresses.reverse()
        try rig.receive(session.seal([]))
        rig.machine.addresses.reverse()
        #expect(try rig.send(rig.packet(1)).map(\.source) == [other])
        try rig.advance(180)
        _ = try rig.sent()
        let first = try rig.send(rig.packet(2))
        #expect(first.kinds == [.initiation])
        try rig.advance(6)
        #expect(try rig.sent().map(\.source.address) == [v4(192, 0, 2, 1)])
    }

    @Test("W1: a packet sent meanwhile restarts the count of tries")
    func packetRestartsTries() throws {
        let rig = Rig()
        try rig.send(rig.packet(1))
        try rig.advance(85)
        try rig.send(rig.packet(2))
        try rig.advance(60)
        #expect(rig.machine.reports.isEmpty)
        #expect(rig.drops(.stagedPacketDropped) == 0)
        try rig.advance(60)
        #expect(rig.machine.reports == [.handshakeGivenUp(rig.peer)])
        #expect(rig.drops(.stagedPacketDropped) == 2)
    }

    @Test("W2: one keepalive answers data after exactly 10 s when nothing else was sent")
    func passiveKeepalive() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        try rig.receive(session.seal(rig.reply(1)))
        try rig.advance(4)
        try rig.receive(session.seal(rig.reply(2)))
        try rig.advance(100)
        let sent = try rig.sent()
        #expect(sent.kinds == [.keepalive])
        #expect(sent.first.map { rig.time(of: $0) } == Paper.keepaliveTimeout)
    }

    @Test("W2: no keepalive follows when data went out in between")
    func passiveKeepaliveNotNeeded() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        try rig.receive(session.seal(rig.reply(1)))
        try rig.advance(9.9)
        #expect(try rig.send(rig.packet(1)).kinds == [.data])
        try rig.receive(session.seal([]))
        try rig.advance(60)
        #expect(try rig.sent().isEmpty)
    }

    @Test("W2: a keepalive is not answered by a keepalive")
    func keepaliveIsNotAnswered() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        for _ in 0..<10 {
            try rig.receive(session.seal([]))
            try rig.advance(11)
        }
        #expect(try rig.sent().isEmpty)
    }

    @Test("W3: data without an answer starts a handshake after 15 s and up to 333 ms")
    func newHandshake() throws {
        let rig = Rig()
        _ = try rig.sessionAsResponder()
        try rig.send(rig.packet(1))
        try rig.advance(3)
        // Later data does not put it off.
        try rig.send(rig.packet(2))
        try rig.advance(13)
        let sent = try rig.sent()
        #expect(sent.kinds == [.initiation])
        let time = try #require(sent.first.map { rig.time(of: $0) })
        #expect(time >= Paper.keepaliveTimeout + Paper.rekeyTimeout)
        #expect(time <= Paper.keepaliveTimeout + Paper.rekeyTimeout + Paper.jitter)
    }

    @Test("W3: any authenticated message, a keepalive too, is an answer")
    func answerCancelsNewHandshake() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        try rig.send(rig.packet(1))
        try rig.advance(14)
        try rig.receive(session.seal([]))
        try rig.advance(60)
        #expect(try rig.sent().isEmpty)
    }

    @Test("W3: a keepalive that was sent does not call for an answer")
    func keepaliveNeedsNoAnswer() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        try rig.receive(session.seal(rig.reply(1)))
        try rig.advance(100)
        #expect(try rig.sent().kinds == [.keepalive])
    }

    @Test("W4: all keys are gone 540 s after the last session was made")
    func zeroKeyMaterial() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        try rig.advance(540 - nanosecond)
        try rig.receive(session.seal([], counter: 5))
        #expect(rig.drops(.expiredSession) == 1)
        #expect(rig.drops(.unknownReceiver) == 0)
        #expect(rig.nextDeadline() == rig.start + seconds(540))
        try rig.advance(nanosecond)
        try rig.receive(session.seal([], counter: 6))
        #expect(rig.drops(.unknownReceiver) == 1)
        #expect(rig.nextDeadline() == nil)
        #expect(rig.indexCount == 0)
    }

    @Test("W4: a new session puts the wiping off")
    func newSessionPutsWipingOff() throws {
        let rig = Rig()
        _ = try rig.sessionAsResponder()
        try rig.advance(100)
        _ = try rig.sessionAsResponder()
        #expect(rig.nextDeadline() == rig.start + seconds(640))
    }

    @Test("W5: persistent keepalives come after the interval of silence, counted from anything authenticated")
    func persistentKeepalive() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        #expect(rig.setKeepalive(25))
        try rig.advance(60)
        #expect(try rig.sent().map { rig.time(of: $0) } == [25, 50])
        try rig.receive(session.seal([]))  // heard at 60
        try rig.advance(to: 86)
        try rig.send(rig.packet(1))  // sent at 86, after 85
        try rig.receive(session.seal([]))
        try rig.advance(to: 112)
        let sent = try rig.sent()
        #expect(sent.kinds == [.keepalive])
        #expect(sent.map { rig.time(of: $0) } == [111])
        #expect(!rig.setKeepalive(nil))
        try rig.advance(to: 179)
        #expect(try rig.sent().isEmpty)
    }

    @Test("W6: initiations to a peer are at least 5 s apart, however many packets want one")
    func initiationsAreLimited() throws {
        let rig = Rig()
        for number in 0..<400 {
            rig.network.send(rig.packet(UInt64(number)), from: rig.machine)
            try rig.advance(0.1)
        }
        let times = try rig.sent().map { rig.time(of: $0) }
        #expect(times.count == 8)
        for (earlier, later) in zip(times, times.dropFirst()) { #expect(later - earlier >= Paper.rekeyTimeout) }
    }

    @Test("W6: a response counts as an initiation")
    func responseLimitsInitiations() throws {
        let rig = Rig()
        try rig.receive(rig.initiation().message)
        #expect(try rig.sent().kinds == [.response])
        // The session is unconfirmed: packets wait. If the peer never uses it, a handshake starts, but not before 5 s.
        for _ in 0..<49 {
            try rig.advance(0.1)
            #expect(try rig.send(rig.packet(1)).isEmpty)
        }
        try rig.advance(to: 5.4)
        #expect(try rig.sent().kinds == [.initiation])
    }

    @Test("W7: the initiator of a session renews it when it sends after 120 s, not before")
    func initiatorRekeys() throws {
        let rig = Rig()
        _ = try rig.sessionAsInitiator()
        try rig.advance(Paper.rekeyAfterTime - nanosecond)
        _ = try rig.sent()
        #expect(try rig.send(rig.packet(1)).kinds == [.data])
        try rig.advance(nanosecond)
        #expect(try rig.send(rig.packet(2)).kinds == [.data, .initiation])
    }

    @Test("W7: a keepalive on an old session renews it too")
    func keepaliveRekeys() throws {
        let rig = Rig()
        var session = try rig.sessionAsInitiator()
        try rig.advance(115)
        _ = try rig.sent()
        try rig.receive(session.seal(rig.reply(1)))
        try rig.advance(10)
        #expect(try rig.sent().kinds == [.keepalive, .initiation])
    }

    @Test("W7: the responder of a session does not renew it at 120 s")
    func responderDoesNotRekey() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        for _ in 0..<17 {
            try rig.advance(10)
            try rig.receive(session.seal(rig.reply(1)))
            #expect(try rig.send(rig.packet(1)).kinds == [.data])
        }
    }

    @Test("W7: either side renews a session after 2^60 messages", arguments: [true, false])
    func rekeyAfterMessages(isInitiator: Bool) throws {
        let rig = Rig()
        _ = try isInitiator ? rig.sessionAsInitiator() : rig.sessionAsResponder()
        try rig.advance(6)
        _ = try rig.sent()
        let keypair = try #require(rig.state.sessions.current)
        keypair.setNextCounter(Paper.rekeyAfterMessages - 1)
        #expect(try rig.send(rig.packet(1)).kinds == [.data])
        #expect(try rig.send(rig.packet(2)).kinds == [.data, .initiation])
    }

    @Test("W8: the initiator renews a session older than 165 s when it receives, once")
    func lastMinuteRekey() throws {
        let rig = Rig()
        var session = try rig.sessionAsInitiator()
        try rig.advance(165 - nanosecond)
        try rig.receive(session.seal(rig.reply(1)))
        #expect(try rig.sent().isEmpty)
        try rig.advance(nanosecond)
        try rig.receive(session.seal(rig.reply(2)))
        #expect(try rig.sent().kinds == [.initiation])
        for number in 0..<40 {
            try rig.advance(0.1)
            try rig.receive(session.seal(rig.reply(UInt64(number))))
        }
        #expect(try rig.sent().isEmpty, "once for a session")
    }

    @Test("W8: the responder leaves that to the initiator")
    func responderDoesNotRekeyOnReceive() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        try rig.advance(179)
        try rig.receive(session.seal(rig.reply(1)))
        #expect(try rig.sent().isEmpty)
    }

    @Test("W9: nothing is sent or accepted on a session of 180 s; a packet waits and a handshake starts")
    func rejectAfterTime() throws {
        let rig = Rig()
        var session = try rig.sessionAsResponder()
        try rig.advance(Paper.rejectAfterTime - nanosecond)
        #expect(try rig.receive(session.seal(rig.reply(1))) == [rig.reply(1)])
        #expect(try rig.send(rig.packet(1)).kinds == [.data])
        try rig.advance(nanosecond)
        #expect(try rig.receive(session.seal(rig.reply(2))).isEmpty)
        #expect(rig.drops(.expiredSession) == 1)
        #expect(try rig.send(rig.packet(2)).kinds == [.initiation])
        #expect(rig.state.staged.count == 1)
    }

    @Test("W9: nothing is sent with a counter at the limit; a packet waits and a handshake starts")
    func rejectAfterMessagesSending() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        try rig.advance(6)
        let keypair = try #require(rig.state.sessions.current)
        keypair.setNextCounter(Paper.rejectAfterMessages - 1)
        let last = try rig.send(rig.packet(1))
        #expect(last.kinds == [.data, .initiation])
        #expect(try #require(session.open(last[0].bytes)).counter == Paper.rejectAfterMessages - 1)
        #expect(try rig.send(rig.packet(2)).isEmpty)
        #expect(rig.state.staged.count == 1)
    }

    @Test("W9: no counter at or above the limit is accepted, and the greatest below it is")
    func rejectAfterMessagesReceiving() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        #expect(try rig.receive(session.seal(rig.reply(1), counter: Paper.rejectAfterMessages)).isEmpty)
        #expect(try rig.receive(session.seal(rig.reply(1), counter: .max)).isEmpty)
        #expect(rig.drops(.expiredSession) == 2)
        let last = session.seal(rig.reply(1), counter: Paper.rejectAfterMessages - 1)
        #expect(try rig.receive(last) == [rig.reply(1)])
        #expect(try rig.receive(last).isEmpty)
        #expect(rig.drops(.replayedCounter) == 1)
    }

    @Test("W10: after a response the initiator sends what waited, in order, at once")
    func stagedPacketsConfirm() throws {
        let rig = Rig()
        let initiation = try rig.firstSent(for: rig.packet(1))
        try rig.send(rig.packet(2))
        try rig.send(rig.packet(3))
        let (response, session) = try rig.response(to: initiation.bytes)
        try rig.receive(response)
        let sent = try rig.sent()
        #expect(sent.kinds == [.data, .data, .data])
        let opened = try sent.map { try #require(session.open($0.bytes)) }
        #expect(opened.map(\.counter) == [0, 1, 2])
        #expect(opened.map { Array($0.plaintext.prefix(36)) } == (1...3).map { rig.packet($0) })
    }

    @Test("W10: without a packet that waits, the initiator confirms with one empty message")
    func keepaliveConfirms() throws {
        let rig = Rig()
        #expect(rig.setKeepalive(1000))
        rig.device.peerConfigured(rig.peer, startsKeepalives: true)
        let initiation = try rig.firstSent()
        let (response, session) = try rig.response(to: initiation.bytes)
        try rig.receive(response)
        let sent = try rig.sent()
        #expect(sent.kinds == [.keepalive])
        #expect(try session.open(#require(sent.first).bytes)?.plaintext == [])
    }

    @Test("W11: time asleep counts: after a suspend of hours a packet starts a handshake at once")
    func suspend() throws {
        let rig = Rig()
        var session = try rig.sessionAsInitiator()
        rig.network.suspend(for: .seconds(5 * 3600))
        #expect(try rig.send(rig.packet(1)).kinds == [.initiation])
        #expect(try rig.receive(session.seal(rig.reply(1))).isEmpty)
    }

    @Test("W11: after a sleep shorter than 540 s old keys are refused by age")
    func shortSuspend() throws {
        let rig = Rig()
        var session = try rig.sessionAsInitiator()
        rig.network.suspend(for: .seconds(200))
        #expect(try rig.receive(session.seal(rig.reply(1))).isEmpty)
        #expect(rig.drops(.expiredSession) == 1)
    }
}
