import DNSMessage
import FuzzSupport

/// The input is a message; and the bytes of a name; and the text of one.
@c(LLVMFuzzerTestOneInput)
public func fuzzDNSMessage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let input = [UInt8](copying: bytes)
        if let view = try? DNSMessageView(checking: bytes) {
            checkMessage(view)
            checkCopy(view)
        }
        checkQuery(input)
        checkEditing(input)
        checkName(bytes)
        checkNameText(input)
    }
}

/// Reads everything that views show, and checks that their parts make up the whole.
private func checkMessage(_ view: borrowing DNSMessageView) {
    let header = view.header
    require(header.questionCount <= 1 && (view.question == nil) == (header.questionCount == 0), "one question or none")
    var (count, end) = (0, view.questionLayout?.endOffset ?? DNSHeader.byteCount)
    var minimum: UInt32?
    var records = view.records
    while let record = records.next() {
        require(record.layout.offset == end, "records follow each other")
        end = record.layout.endOffset
        count += 1
        checkView(record.owner)
        if record.type != .opt, record.type != .tsig, record.type != .sig {
            minimum = min(minimum ?? .max, record.timeToLive)
        }
        require(record.timeToLive <= 0x7FFF_FFFF, "a TTL is below 2³¹")
        if let target = record.target { checkView(target) }
        if let authority = record.startOfAuthority {
            checkView(authority.primaryServer)
            checkView(authority.mailbox)
            _ = (authority.serial, authority.refresh, authority.retry, authority.expire, authority.minimum)
        }
        var lowest = -1
        var parameters = record.serviceParameters
        while let parameter = parameters.next() {
            require(Int(parameter.key.rawValue) > lowest, "keys ascend")
            lowest = Int(parameter.key.rawValue)
            for index in 0..<parameter.addressCount { _ = parameter.address(at: index) }
            _ = parameter.port
        }
        _ = (record.address, record.priority, record.service?.port, record.coveredType, record.isServiceAlias)
    }
    require(end == view.bytes.byteCount, "the last record ends the message")
    require(
        count == Int(header.answerCount) + Int(header.authorityCount) + Int(header.additionalCount), "all are walked")
    require(view.minimumTimeToLive == minimum, "the smallest TTL")
    if let edns = view.edns {
        var length = 0
        var options = edns.options
        while let option = options.next() { length += 4 + option.value.byteCount }
        require(length == edns.optionBytes.byteCount, "options fill their record")
        _ = (edns.extendedError?.code, edns.tcpKeepalive, edns.paddingLength, try? edns.clientSubnet)
    }
    switch view.cacheLifetime {
    case .positive(let seconds), .negative(let seconds):
        require(seconds <= minimum ?? .max, "nothing is kept longer than its records")
    case .failure, .none: break
    }
    _ = ViewAnswerReader().facts(of: view)
}

/// A message that is written anew has the same records in the same order.
private func checkCopy(_ view: borrowing DNSMessageView) {
    var output = [UInt8](repeating: 0, count: DNSMessageView.maximumByteCount)
    var writer = MessageWriter(id: view.header.id, flags: view.header.flags)
    var span = output.mutableSpan
    // Every bit pattern is a byte.
    var buffer = unsafe span.mutableBytes
    guard (try? writer.append(contentsOf: view, into: &buffer, where: { _ in true })) != nil,
        let count = try? writer.finish(into: &buffer)
    else { return }
    let copy = Array(output[..<count])
    copy.read { bytes in
        guard let again = try? DNSMessageView(checking: bytes) else { fatalError("a copy is a message") }
        require(again.bytes.byteCount == bytes.byteCount, "a copy is whole")
        var records = view.records
        var copies = again.records
        while let record = records.next() {
            if record.type == .opt || record.type == .tsig { continue }
            guard let other = copies.next() else { fatalError("a copy has all records") }
            require(record.isInSameSet(as: other) && record.section == other.section, "a copy has the same records")
            require(record.owner.hasSameOctets(as: other.owner), "a copy keeps the case of letters")
            require(record.address == other.address && record.priority == other.priority, "a copy has the same data")
            guard let target = record.target else { continue }
            guard let otherTarget = other.target else { fatalError("a copy has the same names") }
            require(target.hasSameOctets(as: otherTarget), "a copy has the same names")
        }
    }
}

/// The short reading of a query says what the long one does.
private func check(_ plain: PlainQuery, _ query: borrowing QueryView) {
    require(plain.id == query.header.id && plain.flags == query.header.flags, "the same header")
    require(plain.type == query.question.type && plain.recordClass == query.question.recordClass, "the same question")
    require(plain.questionEnd == query.questionLayout.endOffset, "the same end of the question")
    require(plain.hasEDNS == (query.optLayout != nil) && plain.dnssecOK == query.dnssecOK, "the same EDNS")
    require(plain.udpPayloadSize == query.edns?.udpPayloadSize ?? 0, "the same size")
    require(plain.answerLimit == query.answerLimit(), "the same limit")
}

/// Every query gets an answer that reads back, or none for a reason.
private func checkQuery(_ input: [UInt8]) {
    input.read { bytes in
        let error: DNSMessageError?
        do throws(DNSMessageError) {
            let query = try QueryView(checking: bytes)
            require(query.question.name.layout.isCompressed == false, "a question is not compressed")
            let key = CacheKey(query)
            require(key.bytes.byteCount == 5 + query.question.name.length, "the length of a key")
            if let plain = PlainQuery(bytes) { check(plain, query) }
            error = nil
        } catch let thrown {
            require(PlainQuery(bytes) == nil, "what is not in order is not plain")
            error = thrown
        }
        guard let echo = try? QueryEcho(of: bytes) else {
            require(error != nil && error?.responseCode == nil, "what has no answer is dropped")
            return
        }
        let code = error?.responseCode ?? .refused
        var output = [UInt8](repeating: 0, count: 512)
        let count = output.edit { try? echo.writeFailure(code, limit: 512, into: &$0) }
        guard let count else { fatalError("an answer fits into 512 bytes") }
        let answer = Array(output[..<count])
        answer.read { bytes in
            guard let view = try? DNSMessageView(checking: bytes) else { fatalError("an answer is a message") }
            require(view.header.id == echo.header.id, "an answer has the ID")
            require(view.header.flags.contains(.response), "an answer is one")
            require((view.optLayout != nil) == echo.hasEDNS, "an answer has EDNS when the query had")
        }
        let negative = output.edit { try? echo.writeNegative(.nameError, timeToLive: 1, limit: 512, into: &$0) }
        guard let negative else { fatalError("a negative answer fits into 512 bytes") }
        require(Array(output[..<negative]).read { isMessage($0) }, "a negative answer is a message")
    }
}

/// Changes in place of what was a message leave a message; of anything else they trap no step.
private func checkEditing(_ input: [UInt8]) {
    let original = input.read { messageLength($0) }
    var copy = input
    _ = copy.edit { try? MessageEditing.age(&$0, by: 10) }
    if original != nil { require(copy.read { isMessage($0) }, "an aged message is one") }

    for limit in [40, 100, 512] {
        copy = input
        let length = original ?? input.count
        guard let count = copy.edit({ try? MessageEditing.truncate(&$0, count: length, to: limit) }) else { continue }
        require(count <= max(limit, 0) || count == length, "a message is cut to the limit")
        if original != nil { require(Array(copy[..<count]).read { isMessage($0) }, "a cut message is one") }
    }

    let length = original ?? input.count
    copy = Array(input[..<length]) + [UInt8](repeating: 0, count: 128)
    let count = copy.edit { try? MessageEditing.replaceOPT(in: &$0, count: length, with: EDNSFields(), limit: 512) }
    guard let count, original != nil else { return }
    Array(copy[..<count]).read { bytes in
        guard let view = try? DNSMessageView(checking: bytes) else { fatalError("with another OPT it is a message") }
        require(view.edns?.optionBytes.byteCount == 0, "the OPT record is the new one")
        require(bytes.byteCount <= 512, "the whole is within the limit")
    }
}

private func isMessage(_ bytes: RawSpan) -> Bool {
    messageLength(bytes) != nil
}

/// The length of the message at the start of the bytes; nil when there is none.
private func messageLength(_ bytes: RawSpan) -> Int? {
    guard let view = try? DNSMessageView(checking: bytes) else { return nil }
    return view.bytes.byteCount
}

/// A name has labels that make up its length, equals itself in every way, and is read back from its text.
private func checkView(_ name: borrowing DomainNameView) {
    var length = 1
    var labels = name.labels
    while let label = labels.next() { length += 1 + label.byteCount }
    require(length == name.length && length <= 255, "labels make up the name")
    require(name.isEqual(to: name) && name.isSubdomain(of: name), "a name equals itself")
    require(name.canonicalOrder(to: name) == 0, "a name is in its own place")
    let copy = DomainName(name)
    require(copy.view.hasSameOctets(as: name), "a copy has the same octets")
    let lower = DomainName(name, lowercased: true)
    require(lower == copy && lower.hashValue == copy.hashValue, "case does not count")
    require((try? DomainName(parsing: name.presentation)) == copy, "a printed name is read back")
}

private func checkName(_ bytes: RawSpan) {
    for offset in [0, 12, 20] where offset < bytes.byteCount {
        guard let name = try? DomainNameView(checking: bytes, at: offset) else { continue }
        checkView(name)
        guard let other = try? DomainNameView(checking: bytes, at: min(name.layout.endOffset, bytes.byteCount - 1))
        else { continue }
        let order = name.canonicalOrder(to: other)
        require(order.signum() == -other.canonicalOrder(to: name).signum(), "order has two directions")
        require((order == 0) == name.isEqual(to: other), "equal names are in the same place")
    }
}

private func checkNameText(_ input: [UInt8]) {
    guard input.count < 400 else { return }
    guard let name = try? DomainName(parsing: String(decoding: input, as: UTF8.self)) else { return }
    require((try? DomainName(parsing: name.description)) == name, "a name that was read prints and is read again")
}
