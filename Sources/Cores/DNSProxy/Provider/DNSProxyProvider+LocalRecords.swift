internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Names that have records in the configuration or in a hosts file.
///
/// ```
///   www.example  CNAME  nas.example              both are local: one answer, and nobody is asked
///   nas.example  A      192.168.1.9
///   alias.example  CNAME  www.example.net        the target is looked up as if a client asked for it: rules, cache, routes and all;
///                                                what comes of it goes behind the alias
/// ```
extension DNSProxyProvider {
    /// Answers a question about a name with local records; nil when it has none.
    mutating func answerFromRecords(
        _ query: borrowing QueryView, _ name: borrowing CanonicalName, from client: ClientToken,
        by transport: ClientTransport, at now: Instant, into output: inout MutableRawSpan
    ) -> Decision? {
        let type = query.question.type
        guard let first = localRecords(of: name, type) else { return nil }
        if type == .any, transport == .udp {
            counters.local &+= 1
            return .answer(composer.minimalAny(to: query, by: transport, into: &output))
        }
        do throws(DNSMessageError) {
            switch try writeRecords(first, query, by: transport, into: &output) {
            case .answer(let count):
                counters.local &+= 1
                return .answer(count)
            case .outside(let target, let count):
                let aliases = [UInt8](copying: output.bytes.extracting(..<count))
                return lookUp(target, aliases, query, from: client, by: transport, at: now, into: &output)
            }
        } catch {
            // More than a message can hold, or aliases in a circle.
            counters.failed &+= 1
            return .answer(composer.failure(.serverFailure, .other, to: query, by: transport, into: &output))
        }
    }

    /// What became of writing local records.
    private enum LocalAnswer {
        /// The answer is written; its length in bytes.
        case answer(Int)
        /// Aliases are written that lead to a name without local records; the length of the message so far.
        case outside(DomainName, Int)
    }

    /// Finds the records of a name: the configuration's, or else those of hosts files, which say nothing about other types than those
    /// that lead to an address.
    private func localRecords(of name: borrowing CanonicalName, _ type: RecordType) -> LocalNames.Found? {
        if let found = records.find(name) { return found }
        return HostNames.isAbout(type) ? hosts.names.find(name) : nil
    }

    /// Writes what a question finds, following aliases as far as local records go.
    private func writeRecords(
        _ first: LocalNames.Found, _ query: borrowing QueryView, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> LocalAnswer {
        let type = query.question.type
        var writer = try query.echo.startAnswer(.noError, into: &output)
        var (found, owner) = (first, DomainName(query.question.name))
        for _ in 0...DNSMessageView.maximumAliasCount {
            guard let target = found.alias, type != .cname, type != .any else {
                let view = owner.view
                if try !found.append(type, of: view, dnssecOK: query.dnssecOK, to: &writer, into: &output) {
                    try writer.append(emptyZone: view, timeToLive: found.timeToLive, into: &output)
                }
                return .answer(try composer.finish(&writer, to: query, by: transport, into: &output))
            }
            do {
                let view = owner.view
                _ = try found.append(.cname, of: view, dnssecOK: query.dnssecOK, to: &writer, into: &output)
            }
            owner = target
            let lowercased = DomainName(target.view, lowercased: true)
            guard let next = localRecords(of: CanonicalName(lowercased: lowercased.bytes), type) else {
                return .outside(target, try writer.finish(into: &output))
            }
            found = next
        }
        throw .outputTooSmall
    }

    /// Goes on with the name that local aliases lead to, as if the client had asked for it.
    private mutating func lookUp(
        _ target: DomainName, _ aliases: [UInt8], _ query: borrowing QueryView, from client: ClientToken,
        by transport: ClientTransport, at now: Instant, into output: inout MutableRawSpan
    ) -> Decision {
        let own = WaitingQuery(
            query, from: client, by: transport, at: now, keepsSubnet: passedSubnet(of: query) != nil)
        let question = [UInt8](copying: target.bytes) + own.bytes[own.questionEnd - 4..<own.questionEnd]
        let bytes = own.bytes[..<DNSHeader.byteCount] + question + own.bytes[own.questionEnd...]
        let message = [UInt8](bytes)
        guard let next = try? QueryView(checking: message.span.octets) else {
            preconditionFailure("a query that was put together of parts in order")
        }
        let decision = handle(next, from: client, by: transport, aliases: aliases, at: now, into: &output)
        guard case .answer(let count) = decision else { return decision }
        return .answer(lead(aliases, to: count, limit: composer.limit(query, transport), &output))
    }

    /// Puts the aliases that led to another name in front of the answer to that name, which is at the start of `output`.
    ///
    /// - Parameters:
    ///   - aliases: The question of the client and the aliases, as a message.
    ///   - limit: The most bytes that the client can take.
    /// - Returns: The length of the whole in bytes.
    mutating func lead(
        _ aliases: [UInt8], to count: Int, limit: Int, _ output: inout MutableRawSpan
    ) -> Int {
        var buffer = takeBuffer(&aliasBuffer)
        let length = Self.lead(aliases.span.octets, to: output.bytes.extracting(..<count), limit: limit, into: &buffer)
        output.copy(buffer.span.octets.extracting(..<length), to: 0)
        aliasBuffer = buffer
        return length
    }

    private static func lead(
        _ aliases: RawSpan, to answer: RawSpan, limit: Int, into buffer: inout [UInt8]
    ) -> Int {
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        do throws(DNSMessageError) {
            return try write(aliases, answer, hasRecords: true, limit: limit, into: &output)
        } catch {}
        do throws(DNSMessageError) {
            // What does not fit behind the aliases is more than a message can hold.
            return try write(aliases, answer, hasRecords: false, limit: limit, into: &output)
        } catch {
            preconditionFailure("a question and an OPT record that do not fit into a message")
        }
    }

    /// Copies an OPT record behind the records of another message. Padding is made anew: the whole has another length.
    ///
    /// - Returns: The length of the message in bytes.
    private static func copyOPT(
        _ opt: RecordLayout, of answer: RawSpan, limit: Int, into output: inout MutableRawSpan, at offset: Int
    ) throws(DNSMessageError) -> Int {
        // It has no name but the root, so that it can be copied as it is.
        guard offset + opt.endOffset - opt.offset <= output.byteCount else { throw .outputTooSmall }
        output.copy(answer.extracting(opt.offset..<opt.data.lowerBound), to: offset)
        let start = offset + opt.data.lowerBound - opt.offset
        var (end, isPadded, position) = (start, false, opt.data.lowerBound)
        while position < opt.data.upperBound {
            let next = position + 4 + Int(answer.bigEndianUInt16(at: position + 2))
            if answer.bigEndianUInt16(at: position) == EDNSOptionCode.padding.rawValue {
                isPadded = true
            } else {
                output.copy(answer.extracting(position..<next), to: end)
                end += next - position
            }
            position = next
        }
        let most = min(limit, output.byteCount)
        if isPadded, end + 4 <= most {
            let block = EDNSFields.answerPaddingBlock
            let length = min((end + 4 + block - 1) / block * block, most) - end - 4
            output.storeBigEndian(EDNSOptionCode.padding.rawValue, at: end)
            output.storeBigEndian(UInt16(truncatingIfNeeded: length), at: end + 2)
            output.zero(from: end + 4, count: length)
            end += 4 + length
        }
        output.storeBigEndian(UInt16(truncatingIfNeeded: end - start), at: start - 2)
        return end
    }

    /// - Parameter hasRecords: False for a failure that holds nothing but the question.
    private static func write(
        _ aliases: RawSpan, _ answer: RawSpan, hasRecords: Bool, limit: Int, into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        let way = try DNSMessageView(checking: aliases)
        let view = try DNSMessageView(checking: answer)
        guard let question = way.question else { throw .invalidQuestionCount }
        var flags = view.header.flags
        // The aliases are proved by nobody.
        flags.remove(.authenticData)
        if !hasRecords { flags.responseCode = .serverFailure }
        var writer = MessageWriter(id: view.header.id, flags: flags)
        try writer.append(
            question: question.name, type: question.type, recordClass: question.recordClass, into: &output)
        let code = flags.responseCode
        if hasRecords, code == .noError || code == .nameError {
            var records = way.records
            while let record = records.next() { try writer.append(record, into: &output) }
            var others = view.records
            while let record = others.next() {
                if record.type != .opt { try writer.append(record, into: &output) }
            }
        }
        var count = writer.count
        if let opt = view.optLayout {
            count = try copyOPT(opt, of: answer, limit: limit, into: &output, at: count)
            writer.header.additionalCount += 1
        }
        _ = try writer.finish(into: &output)
        return try MessageEditing.truncate(&output, count: count, to: limit)
    }
}
