import EncryptedDNS
import FuzzSupport

/// What a client says on an HTTP/2 connection to the DNS server. The first byte says how the rest is cut into pieces, how much of the
/// server's bytes the client takes between them, and when queries are answered.
///
/// Without TLS, which would hide every byte. The client's preface is in front of the input.
@c(LLVMFuzzerTestOneInput)
public func fuzzDoHServer(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let input = [UInt8](copying: bytes)
        var limits = DoHServerLimits()
        (limits.bufferedByteCount, limits.headerByteCount) = (20_000, 2_000)
        guard let first = input.first, var session = try? DoHServerSession(path: "/dns-query", limits: limits) else {
            return
        }
        var ledger = Ledger(answersLate: first & 0x40 != 0, takesLittle: first & 0x80 != 0)
        let stream = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + input.dropFirst()
        let step = Int(first & 0x3F) * 16 + 1
        var offset = 0
        while offset < stream.count {
            let piece = Array(stream[offset..<min(offset + step, stream.count)])
            offset += piece.count
            guard piece.read({ (try? session.receive($0)) != nil }) else { break }
            ledger.settle(&session, limits)
        }
        ledger.answerAll(&session)
        session.goAway()
        ledger.takeAll(&session)
    }
}

/// Which streams wait for an answer: each is asked for once, and abandoned only while it waits.
private struct Ledger {
    let answersLate: Bool
    let takesLittle: Bool
    private var waiting: [Int32] = []
    private var last: Int32 = 0

    init(answersLate: Bool, takesLittle: Bool) {
        (self.answersLate, self.takesLittle) = (answersLate, takesLittle)
    }

    mutating func settle(_ session: inout DoHServerSession, _ limits: DoHServerLimits) {
        while let event = session.nextEvent() {
            switch event {
            case .query(let stream, let message):
                require(stream > last, "no stream asks twice")
                require(12...65_535 ~= message.count, "a query has a header")
                last = stream
                waiting.append(stream)
            case .abandoned(let stream):
                require(waiting.contains(stream), "only what waits is abandoned")
                waiting.removeAll { $0 == stream }
            }
        }
        require(waiting.count <= limits.streamCount, "no more streams are open than there may be")
        // Each stream may bring a body, and each that waits one answer, beyond the limit.
        require(session.bufferedByteCount <= limits.bufferedByteCount + 70_000, "what is kept is bounded")
        if !answersLate { answerAll(&session) }
        if takesLittle {
            _ = try? session.takeOutgoing()
        } else {
            takeAll(&session)
        }
    }

    mutating func answerAll(_ session: inout DoHServerSession) {
        let answer: [UInt8] = [0, 0, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0x61, 0, 0, 1, 0, 1]
        for (index, stream) in waiting.enumerated() {
            if index % 5 == 4 {
                session.refuse(stream, .badRequest)
            } else {
                answer.read { session.answer(stream, $0) }
            }
        }
        waiting = []
    }

    mutating func takeAll(_ session: inout DoHServerSession) {
        while let bytes = try? session.takeOutgoing(), !bytes.isEmpty {}
    }
}
