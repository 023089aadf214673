import ByteAccess
import DNSMessage
import IPPacket
import TestSupport
import Testing

@Suite struct MessageEditingTests {
    private func timesToLive(_ bytes: [UInt8]) throws -> [UInt32] {
        let view = try DNSMessageView(checking: bytes.span.octets)
        var times: [UInt32] = []
        var records = view.records
        while let record = records.next() {
            if record.type != .opt { times.append(record.timeToLive) }
        }
        return times
    }

    @Test(
        arguments: [
            (0, [100, 300, 300, 3600, 3600]), (99, [1, 201, 201, 3501, 3501]), (300, [0, 0, 0, 3300, 3300]),
        ] as [(UInt32, [UInt32])])
    func `every TTL loses the seconds that have passed, OPT loses none`(
        _ seconds: UInt32, _ times: [UInt32]
    ) throws {
        let original = SampleMessages.all[2].bytes
        var bytes = original
        try bytes.edit { message throws(DNSMessageError) in try MessageEditing.age(&message, by: seconds) }
        #expect(try timesToLive(bytes) == times)
        #expect(bytes.suffix(11) == original.suffix(11))
        // Nothing but times to live has changed: with the old ones it is the same again.
        let view = try DNSMessageView(checking: original.span.octets)
        var records = view.records
        while let record = records.next() {
            let offset = record.layout.timeToLiveOffset
            bytes.replaceSubrange(offset..<offset + 4, with: original[offset..<offset + 4])
        }
        #expect(bytes == original)
    }

    @Test func `a TTL that counts as zero is written as zero`() throws {
        var bytes = try answer([record("c00c", 1, ttl: .max, [192, 0, 2, 1])])
        try bytes.edit { message throws(DNSMessageError) in try MessageEditing.age(&message, by: 0) }
        #expect(bytes == (try answer([record("c00c", 1, ttl: 0, [192, 0, 2, 1])])))
    }

    @Test func `bounds leave zero alone, and a fixed TTL goes everywhere`() throws {
        var bytes = try answer([0, 5, 100, 9000].map { record("c00c", 1, ttl: $0, [192, 0, 2, 1]) })
        try bytes.edit { message throws(DNSMessageError) in
            try MessageEditing.boundTimesToLive(of: &message, to: 60...3600)
        }
        #expect(try timesToLive(bytes) == [0, 60, 100, 3600])
        try bytes.edit { message throws(DNSMessageError) in try MessageEditing.setTimesToLive(of: &message, to: 30) }
        #expect(try timesToLive(bytes) == [30, 30, 30, 30])
    }

    @Test func `ID and flags are changed in place`() throws {
        var bytes = SampleMessages.all[0].bytes
        bytes.edit { message in
            MessageEditing.setID(0x1234, in: &message)
            let flags = MessageEditing.flags(of: message)
            MessageEditing.setFlags(flags.union(.authenticData), in: &message)
        }
        #expect(Array(bytes[..<4]) == hex("1234 0120"))
        #expect(bytes[4...] == SampleMessages.all[0].bytes[4...])
    }

    @Test func `a stored answer takes the case of another client's question`() throws {
        var bytes = SampleMessages.all[2].bytes
        let asked = try query("eXAMPLE.Com")
        let question = try QueryView(checking: asked.span.octets).question
        let isCopied = try bytes.edit { message throws(DNSMessageError) in
            try MessageEditing.copyQuestionCase(from: question, in: &message)
        }
        #expect(isCopied)
        let before = bytes
        let view = try DNSMessageView(checking: before.span.octets)
        #expect(view.question?.name.presentation == "eXAMPLE.Com.")
        var records = view.records
        #expect(records.next()?.owner.presentation == "eXAMPLE.Com.")
        let other = try query("example.net")
        let otherQuestion = try QueryView(checking: other.span.octets).question
        let isOther = try bytes.edit { message throws(DNSMessageError) in
            try MessageEditing.copyQuestionCase(from: otherQuestion, in: &message)
        }
        #expect(!isOther && bytes == before)
    }

    @Test func `each bit of entropy is the case of one letter`() throws {
        var bytes = try query("ab-1C.\\192d")
        try bytes.edit { message throws(DNSMessageError) in
            try MessageEditing.mixQuestionCase(in: &message, entropy: [0b0101, 0, 0, 0])
        }
        #expect(bytes == (try query("aB-1c.\\192D")))
        let deep = String(repeating: "a.", count: 127)
        bytes = try query(deep)
        try bytes.edit { message throws(DNSMessageError) in
            try MessageEditing.mixQuestionCase(in: &message, entropy: [0, .max, 0, .max])
        }
        let letters = (0..<127).map { bytes[13 + 2 * $0] == UInt8(ascii: "a") }
        #expect(letters == (0..<127).map { $0 / 64 == 1 })
    }

    /// Three sets in the answer section, one in the authority section, one in the additional section, and OPT.
    private static func large(_ withOPT: Bool) throws -> [UInt8] {
        let names = ["c00c", "01 61 c00c", "01 62 c00c"]
        let answers = names.flatMap { name in (0..<12).map { record(name, 1, [192, 0, 2, UInt8($0)]) } }
        let authority = (0..<5).map { record("01 63 c00c", 2, [0x01, UInt8(0x61 + $0), 0xC0, 0x0C]) }
        let additional = (0..<5).map { record("01 64 c00c", 28, [UInt8](repeating: UInt8($0), count: 16)) }
        return try answer(
            answers, authority: authority, additional: additional + (withOPT ? [opt([0, 15, 0, 2, 0, 4])] : []))
    }

    @Test(arguments: [true, false])
    func `truncation keeps whole sets, the question and OPT, at every size`(_ withOPT: Bool) throws {
        let original = try Self.large(withOPT)
        let sizes = [0, 12, 24, 36]
        var previous = 0
        for limit in 64...original.count + 1 {
            var bytes = original
            let count = try bytes.edit { message throws(DNSMessageError) in
                try MessageEditing.truncate(&message, count: original.count, to: limit)
            }
            #expect(count <= limit && count >= previous)
            previous = count
            let cut = Array(bytes[..<count])
            let view = try DNSMessageView(checking: cut.span.octets)
            #expect(view.bytes.byteCount == count)
            #expect(view.header.flags.contains(.truncated) == (count < original.count))
            let header = view.header
            #expect(sizes.contains(Int(header.answerCount)))
            #expect([0, 5].contains(header.authorityCount))
            #expect([0, 5].contains(Int(header.additionalCount) - (withOPT ? 1 : 0)))
            #expect(header.answerCount == 36 || header.authorityCount == 0)
            #expect(view.edns?.extendedError?.code == (withOPT ? .forgedAnswer : nil))
            if count == original.count { #expect(cut == original) }
        }
        #expect(previous == original.count)
    }

    @Test func `what cannot be cut to a size is left as it was`() throws {
        let original = try Self.large(true)
        var bytes = original
        #expect(throws: DNSMessageError.outputTooSmall) {
            try bytes.edit { message throws(DNSMessageError) in
                try MessageEditing.truncate(&message, count: original.count, to: 40)
            }
        }
        #expect(bytes == original)
    }

    private func replacing(_ bytes: [UInt8], with fields: EDNSFields?, limit: Int = 65_535) throws -> [UInt8] {
        var buffer = bytes + [UInt8](repeating: 0xEE, count: 600)
        let count = try buffer.edit { message throws(DNSMessageError) in
            try MessageEditing.replaceOPT(in: &message, count: bytes.count, with: fields, limit: limit)
        }
        return Array(buffer[..<count])
    }

    @Test func `an OPT record is taken away, added and replaced`() throws {
        let address = record("c00c", 1, [192, 0, 2, 1])
        let (without, with) = (try answer([address]), try answer([address], additional: [opt()]))
        let theirs = try answer([address], additional: [opt(hex("000a 0008 0102030405060708"), size: 4096)])
        #expect(try replacing(theirs, with: nil) == without)
        #expect(try replacing(without, with: nil) == without)
        #expect(try replacing(without, with: EDNSFields()) == with)
        #expect(try replacing(theirs, with: EDNSFields()) == with)
        #expect(try replacing(with, with: EDNSFields()) == with)
    }

    @Test func `records behind an OPT record move up, or are refused when something points to them`() throws {
        let address = record("c00c", 1, [192, 0, 2, 1])
        let glue = record("02 6e73 c00c", 1, [192, 0, 2, 53])
        let moved = try answer([address], additional: [glue])
        #expect(try replacing(answer([address], additional: [opt(), glue]), with: nil) == moved)
        #expect(
            try replacing(answer([address], additional: [opt(), glue]), with: EDNSFields())
                == answer([address], additional: [glue, opt()]))
        let pointing = try answer([address], additional: [opt(), glue, record("c038", 1, [192, 0, 2, 54])])
        #expect(messageError(pointing) == nil)
        #expect(throws: DNSMessageError.recordsBehindOPT) { try replacing(pointing, with: nil) }
        // Copied, it loses the record all the same.
        let view = try DNSMessageView(checking: pointing.span.octets)
        let copy = try written {
            var writer = MessageWriter(id: view.header.id, flags: view.header.flags)
            try writer.append(contentsOf: view, into: &$0) { _ in true }
            return try writer.finish(into: &$0)
        }
        let again = try DNSMessageView(checking: copy.span.octets)
        #expect(again.header.additionalCount == 2 && again.optLayout == nil)
    }

    @Test func `an answer that has no room for its OPT record is cut to make it`() throws {
        let original = try Self.large(false)
        let answer = try replacing(original, with: EDNSFields(), limit: 512)
        let view = try DNSMessageView(checking: answer.span.octets)
        #expect(answer.count <= 512 && view.header.flags.contains(.truncated))
        #expect(view.optLayout != nil && view.header.answerCount == 24)
    }

    @Test func `signatures and proofs are left out of a copy, aliases stay`() throws {
        let bytes = SampleMessages.all[5].bytes
        let view = try DNSMessageView(checking: bytes.span.octets)
        let copy = try written {
            var writer = MessageWriter(id: view.header.id, flags: view.header.flags)
            try writer.append(contentsOf: view, into: &$0) { !$0.type.isDNSSECProof }
            return try writer.finish(into: &$0)
        }
        #expect(
            copy
                == hex(
                    "abcd 81a0 0001 0001 0000 0000 \(SampleMessages.example) 0001 0001 c00c 0001 0001 0000012c 0004 c0000201"
                ))
    }
}
