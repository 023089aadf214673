import ByteAccess
import DNSMessage
import TestSupport
import Testing

/// A trap would end the test process: the tests of cut and changed messages pass by getting to their end.
@Suite struct MalformedMessageTests {
    @Test func `the lists are there and every entry is whole`() {
        #expect(MalformedMessage.queries.count >= 70)
        #expect(MalformedMessage.answers.count >= 95)
        for list in [MalformedMessage.queries, MalformedMessage.answers] {
            #expect(Set(list.map(\.name)).count == list.count)
            #expect(list.allSatisfy { !$0.error.isEmpty && !$0.reply.isEmpty })
        }
    }

    @Test(arguments: MalformedMessage.queries)
    func `a malformed query has the error that the list says`(_ query: MalformedMessage) {
        let error = queryError(query.bytes)
        #expect(error.map { "\($0)" } == query.error)
    }

    @Test(arguments: MalformedMessage.queries)
    func `a malformed query gets the reply that the list says, with its ID and nothing compressed`(
        _ query: MalformedMessage
    ) throws {
        let error = try #require(queryError(query.bytes))
        guard let code = error.responseCode else {
            #expect(query.reply == "drop")
            #expect(echoError(query.bytes) == error)
            return
        }
        let names: [String: ResponseCode] = [
            "FORMERR": .formatError, "NOTIMP": .notImplemented, "BADVERS": .badVersion,
        ]
        #expect(names[query.reply] == code)
        let echo = try QueryEcho(of: query.bytes.span.octets)
        let answer = try written { try echo.writeFailure(code, into: &$0) }
        let view = try DNSMessageView(checking: answer.span.octets)
        #expect(view.bytes.byteCount == answer.count)
        #expect(Array(answer[..<2]) == Array(query.bytes[..<2]))
        #expect(view.header.flags.contains([.response, .recursionAvailable]))
        #expect(view.header.flags.isDisjoint(with: [.authoritativeAnswer, .truncated, .reserved, .authenticData]))
        #expect(view.header.flags.opcode == DNSFlags(rawValue: UInt16(query.bytes[2]) << 8).opcode)
        #expect(view.responseCode == code)
        #expect(view.header.answerCount == 0 && view.header.authorityCount == 0)
        if let question = view.questionLayout {
            #expect(!question.name.isCompressed)
            #expect(answer[12..<question.endOffset] == query.bytes[12..<question.endOffset])
        }
    }

    @Test(arguments: [
        "no-question-with-opt", "two-opt", "edns-version-1", "option-one-byte-too-long", "subnet-with-scope",
        "cookie-of-7",
    ])
    func `a malformed query whose OPT record can be found gets one back`(_ name: String) throws {
        let query = try #require(MalformedMessage.queries.first { $0.name == name })
        let code = try #require(queryError(query.bytes)?.responseCode)
        let answer = try written { try QueryEcho(of: query.bytes.span.octets).writeFailure(code, into: &$0) }
        let view = try DNSMessageView(checking: answer.span.octets)
        #expect(view.optLayout != nil && view.header.additionalCount == 1)
    }

    @Test(arguments: MalformedMessage.answers)
    func `a malformed answer has the error that the list says`(_ answer: MalformedMessage) {
        let error = messageError(answer.bytes)
        #expect(error.map { "\($0)" } == answer.error)
    }

    @Test(arguments: SampleMessages.all)
    func `a message cut anywhere is an error`(_ message: SampleMessage) {
        for count in 0..<message.bytes.count {
            let cut = Array(message.bytes[..<count])
            #expect(messageError(cut) != nil)
            exercise(cut)
        }
    }

    @Test(arguments: SampleMessages.all)
    func `any changed byte is taken`(_ message: SampleMessage) {
        for offset in message.bytes.indices {
            for value in [0, 1, 2, 12, 0x29, 0x3F, 0x40, 0x7F, 0x80, 0xC0, 0xFA, 0xFF] as [UInt8] {
                var changed = message.bytes
                changed[offset] = value
                exercise(changed)
            }
        }
    }

    @Test func `random bytes and random mutations are taken`() {
        var random = SeededGenerator(seed: 1035)
        for _ in 0..<5_000 {
            exercise(random.bytes(Int.random(in: 0..<200, using: &random)))
            exercise(SampleMessages.mutated(using: &random))
        }
    }
}

/// Calls everything there is on the bytes.
func exercise(_ bytes: [UInt8]) {
    if let view = try? DNSMessageView(checking: bytes.span.octets) { exerciseView(view) }
    _ = queryError(bytes)
    if let echo = try? QueryEcho(of: bytes.span.octets) {
        let negative = try? written { try echo.writeNegative(.nameError, timeToLive: 10, into: &$0) }
        #expect(negative.map(messageError) == .some(nil))
    }
    var copy = bytes
    _ = try? copy.edit { output throws(DNSMessageError) in try MessageEditing.age(&output, by: 7) }
    copy = bytes + [UInt8](repeating: 0, count: 64)
    for limit in [12, 30, 64, 512] {
        _ = try? copy.edit { output throws(DNSMessageError) in
            try MessageEditing.truncate(&output, count: bytes.count, to: limit)
        }
        copy.replaceSubrange(..<bytes.count, with: bytes)
        _ = try? copy.edit { output throws(DNSMessageError) in
            try MessageEditing.replaceOPT(in: &output, count: bytes.count, with: EDNSFields(), limit: limit)
        }
        copy.replaceSubrange(..<bytes.count, with: bytes)
    }
    _ = try? copy.edit { output throws(DNSMessageError) in
        try MessageEditing.mixQuestionCase(in: &output, entropy: [1, 2, 3, 4])
    }
}

private func exerciseView(_ view: borrowing DNSMessageView) {
    _ = (view.responseCode, view.answerKind, view.cacheLifetime, view.minimumTimeToLive, view.negativeTimeToLive)
    if let question = view.question {
        exerciseName(question.name)
        _ = CacheKey(question, dnssecOK: true, checkingDisabled: false)
    }
    if let edns = view.edns {
        var options = edns.options
        var length = 0
        while let option = options.next() { length += 4 + option.value.byteCount }
        #expect(length == edns.optionBytes.byteCount)
        _ = (
            edns.version, edns.effectiveUDPPayloadSize, edns.extendedError?.code, edns.tcpKeepalive, edns.paddingLength
        )
        _ = (try? edns.clientSubnet, try? edns.cookie)
    }
    var count = 0
    var records = view.records
    while let record = records.next() {
        count += 1
        exerciseName(record.owner)
        if let target = record.target { exerciseName(target) }
        if let authority = record.startOfAuthority {
            exerciseName(authority.primaryServer)
            exerciseName(authority.mailbox)
            _ = (authority.serial, authority.refresh, authority.retry, authority.expire, authority.minimum)
        }
        var parameters = record.serviceParameters
        while let parameter = parameters.next() {
            for index in 0..<parameter.addressCount { _ = parameter.address(at: index) }
            _ = parameter.port
        }
        _ = (
            record.address, record.priority, record.service, record.coveredType, record.timeToLive,
            record.isServiceAlias
        )
    }
    let header = view.header
    #expect(count == Int(header.answerCount) + Int(header.authorityCount) + Int(header.additionalCount))
    // What was accepted can be written anew, and then reads as the same number of records.
    var buffer = [UInt8](repeating: 0, count: 65_535)
    var span = buffer.mutableSpan
    var output = span.mutableOctets
    var writer = MessageWriter(id: header.id, flags: header.flags)
    guard (try? writer.append(contentsOf: view, into: &output, where: { _ in true })) != nil,
        let end = try? writer.finish(into: &output)
    else { return }
    let copy = Array(buffer[..<end])
    #expect(messageError(copy) == nil)
    let again = try? DNSHeader(parsing: copy.span.octets)
    #expect(again?.answerCount == header.answerCount)
    #expect(again?.authorityCount == header.authorityCount)
}

private func exerciseName(_ name: borrowing DomainNameView) {
    #expect(1...255 ~= name.length && 0...127 ~= name.labelCount)
    let isSame = name.isEqual(to: name) && name.isSubdomain(of: name) && name.canonicalOrder(to: name) == 0
    #expect(isSame)
    let copy = DomainName(name)
    #expect(copy.bytes.byteCount == name.length)
    #expect((try? DomainName(parsing: name.presentation)) == copy)
    var labels = name.labels
    var count = 0
    while let label = labels.next() {
        #expect(1...63 ~= label.byteCount)
        count += 1
    }
    #expect(count == name.labelCount)
}
