import ByteAccess
public import IPPacket

extension QueryEcho {
    /// The header of an answer: the query's ID, opcode, RD and CD, with QR and RA (RFC 1035 §4.1.1, RFC 4035 §3.2.2).
    public func answerFlags(_ code: ResponseCode) -> DNSFlags {
        var flags = header.flags.intersection([.recursionDesired, .checkingDisabled])
        flags.formUnion([.response, .recursionAvailable])
        flags.opcode = header.flags.opcode
        flags.responseCode = code
        return flags
    }

    /// Writes an answer without records: FORMERR, SERVFAIL, NOTIMP, REFUSED, BADVERS and the like. The question is repeated when it
    /// could be read.
    ///
    /// - Parameters:
    ///   - edns: The OPT record, which is only written when the query had one; DO is the query's.
    ///   - limit: The most bytes that the answer may have.
    /// - Returns: The length of the answer in bytes.
    public func writeFailure(
        _ code: ResponseCode, edns: EDNSFields = EDNSFields(), limit: Int = DNSMessageView.maximumByteCount,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        var writer = try startAnswer(code, limit: limit, into: &output)
        return try finish(&writer, code, edns, into: &output)
    }

    /// Writes that there is no such name, or nothing of that type, with an SOA record that says for how long that may be kept
    /// (RFC 2308 §3 and §5): its TTL and its MINIMUM are the same.
    ///
    /// - Parameters:
    ///   - code: ``ResponseCode/nameError``, or ``ResponseCode/noError`` for NODATA.
    ///   - timeToLive: In seconds.
    ///   - zoneLabelCount: The number of labels of the zone's name, which is the end of the question's. Nil stands for all of them, but
    ///     the first when the name is said not to exist, as its zone does.
    public func writeNegative(
        _ code: ResponseCode, timeToLive: UInt32, zoneLabelCount: Int? = nil, edns: EDNSFields = EDNSFields(),
        limit: Int = DNSMessageView.maximumByteCount, into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        var writer = try startAnswer(code, limit: limit, into: &output)
        if let question {
            let name = question.name
            let kept = zoneLabelCount ?? (code == .nameError ? name.labelCount - 1 : name.labelCount)
            let zone = name.walk(from: name.labelCount - max(0, min(kept, name.labelCount)))
            let bytes = name.bytes
            try writer.appendStartOfAuthority(bytes, zone, question.recordClass, timeToLive, into: &output)
        }
        return try finish(&writer, code, edns, into: &output)
    }

    /// Writes the addresses that the question asks for: those of version 4 for A, of version 6 for AAAA. When there is none among them
    /// the answer is NODATA. When they do not fit, all are left out and TC is set (RFC 2181 §9).
    public func writeAddresses(
        _ addresses: Span<IPAddress>, timeToLive: UInt32, edns: EDNSFields = EDNSFields(),
        limit: Int = DNSMessageView.maximumByteCount, into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        guard let question else { return try writeFailure(.formatError, edns: edns, limit: limit, into: &output) }
        var writer = try startAnswer(.noError, limit: limit, into: &output)
        let room = hasEDNS ? edns.minimumLength : 0
        let name = question.name
        var isEmpty = true
        for index in addresses.indices {
            guard (addresses[index].version == .v4 ? RecordType.a : .aaaa) == question.type else { continue }
            isEmpty = false
            do {
                try writer.append(owner: name, address: addresses[index], timeToLive: timeToLive, into: &output)
                guard writer.count <= writer.limit - room else { throw DNSMessageError.outputTooSmall }
            } catch {
                writer = try startAnswer(.noError, limit: limit, into: &output)
                writer.header.flags.insert(.truncated)
                break
            }
        }
        if isEmpty {
            return try writeNegative(.noError, timeToLive: timeToLive, edns: edns, limit: limit, into: &output)
        }
        return try finish(&writer, .noError, edns, into: &output)
    }

    /// Writes the short answer to a query of type ANY: one HINFO record that says why (RFC 8482 §4.2).
    public func writeMinimalAny(
        timeToLive: UInt32, edns: EDNSFields = EDNSFields(), limit: Int = DNSMessageView.maximumByteCount,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        var writer = try startAnswer(.noError, limit: limit, into: &output)
        if let question {
            let text: InlineArray<9, UInt8> = [7, 0x52, 0x46, 0x43, 0x38, 0x34, 0x38, 0x32, 0]
            try writer.append(
                owner: question.name, type: .hinfo, recordClass: question.recordClass, timeToLive: timeToLive,
                data: text.span.octets, into: &output)
        }
        return try finish(&writer, .noError, edns, into: &output)
    }

    /// A writer with the header of an answer and the question, when it could be read: for answers of more than one record.
    public func startAnswer(
        _ code: ResponseCode, limit: Int = DNSMessageView.maximumByteCount, into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> MessageWriter {
        var writer = MessageWriter(id: header.id, flags: answerFlags(code), limit: limit)
        if let question {
            try writer.append(
                question: question.name, type: question.type, recordClass: question.recordClass, into: &output)
        }
        return writer
    }

    /// Ends an answer that ``startAnswer(_:limit:into:)`` began: with an OPT record when the query had one.
    public func finish(
        _ writer: inout MessageWriter, _ code: ResponseCode, _ edns: EDNSFields = EDNSFields(),
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        if hasEDNS {
            var edns = edns
            edns.dnssecOK = dnssecOK
            try writer.append(edns, responseCode: code, into: &output)
        }
        return try writer.finish(into: &output)
    }
}

extension MessageWriter {
    /// Writes into the authority section the SOA record of a zone that nobody looks after, for an answer that says that there is nothing.
    ///
    /// - Parameter timeToLive: For how many seconds that may be kept; it is MINIMUM too.
    public mutating func append(
        startOfAuthorityOf zone: borrowing DomainNameView, timeToLive: UInt32, into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        try appendStartOfAuthority(zone.bytes, zone.walk(from: 0), .internet, timeToLive, into: &output)
    }

    fileprivate mutating func appendStartOfAuthority(
        _ bytes: RawSpan, _ zone: LabelWalk, _ recordClass: RecordClass, _ timeToLive: UInt32,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        try appendRecord(bytes, zone, .soa, recordClass, timeToLive, .authority, into: &output) {
            (writer, output, position) throws(DNSMessageError) in
            // The fields are those that RFC 6303 §3 gives to empty zones; MNAME is the zone itself.
            try writer.write(bytes, zone, compressed: true, into: &output, at: &position)
            let mailbox = DomainName.nobody
            try writer.write(mailbox.bytes, LabelWalk(at: 0), compressed: true, into: &output, at: &position)
            try writer.reserve(20, at: position, in: output)
            output.storeBigEndian(1 as UInt32, at: position)
            output.storeBigEndian(3600 as UInt32, at: position + 4)
            output.storeBigEndian(1200 as UInt32, at: position + 8)
            output.storeBigEndian(604_800 as UInt32, at: position + 12)
            output.storeBigEndian(timeToLive, at: position + 16)
            position += 20
        }
    }
}

extension DomainName {
    /// `nobody.invalid.`, the mailbox of zones that nobody looks after (RFC 6303 §3).
    static var nobody: DomainName {
        let octets: InlineArray<16, UInt8> = [
            6, 0x6E, 0x6F, 0x62, 0x6F, 0x64, 0x79, 7, 0x69, 0x6E, 0x76, 0x61, 0x6C, 0x69, 0x64, 0,
        ]
        guard let view = try? DomainNameView(checking: octets.span.octets, at: 0) else {
            preconditionFailure("a name that is written above")
        }
        return DomainName(view)
    }
}
