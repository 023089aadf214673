internal import ByteAccess
internal import DNSMessage
internal import IPPacket

/// What is known when the IPv4 addresses of a name are asked for instead of those of IPv6.
struct AbsentAddresses: Sendable {
    /// The TTL in seconds of what is made when nothing says for how long the IPv6 addresses are absent (RFC 6147 §5.1.7).
    static var usualTimeToLive: UInt32 { 600 }

    /// The answer that says that there are none, as it is kept; nil when no server answered.
    var answer: [UInt8]?
    /// For how many seconds that holds.
    var timeToLive = usualTimeToLive
}

/// Writes answers to questions about IPv6 from answers about IPv4 (RFC 6147 §5.1 to §5.4). All that is written loses AD, since it is
/// not what a server proved, and signatures of what was changed are left out.
enum AnswerTranslation {
    /// Writes the answer about AAAA that an answer about A gives: aliases stay, and each address is put behind the prefix. It lives no
    /// longer than the IPv6 addresses are known to be absent.
    ///
    /// - Returns: The length in bytes; nil when it does not fit.
    static func writeAddresses(
        of answer: borrowing DNSMessageView, behind prefix: TranslationPrefix, _ absent: AbsentAddresses,
        question: borrowing QuestionView, into buffer: inout [UInt8]
    ) -> Int? {
        write(answer, question, into: &buffer) { (record, writer, output) throws(DNSMessageError) in
            guard record.section == .answer else { return try writer.append(record, into: &output) }
            guard record.type == .a, case .v4(let address)? = record.address else {
                if record.coveredType != .a { try writer.append(record, into: &output) }
                return
            }
            guard translates(address, by: prefix) else { return }
            try writer.append(
                owner: record.owner, address: .v6(prefix.address(of: address)),
                timeToLive: min(record.timeToLive, absent.timeToLive), into: &output)
        }
    }

    /// True when an answer about A has an address that is translated.
    static func hasAddress(_ answer: borrowing DNSMessageView, for prefix: TranslationPrefix) -> Bool {
        var records = answer.records(in: .answer)
        while let record = records.next() {
            if case .v4(let address)? = record.address, translates(address, by: prefix) { return true }
        }
        return false
    }

    private static func translates(_ address: IPv4Address, by prefix: TranslationPrefix) -> Bool {
        !prefix.isWellKnown || !IPAddress.v4(address).isOfTheInside
    }

    /// How many addresses of an answer about AAAA count, and how many are those of IPv4 in another form, which do not (RFC 6147 §5.1.4).
    static func addressCounts(_ answer: borrowing DNSMessageView) -> (real: Int, excluded: Int) {
        var counts = (real: 0, excluded: 0)
        var records = answer.records(in: .answer)
        while let record = records.next() {
            guard record.type == .aaaa, case .v6(let address)? = record.address else { continue }
            if address.mappedIPv4 == nil { counts.real += 1 } else { counts.excluded += 1 }
        }
        return counts
    }

    /// Writes an answer about AAAA without the addresses that do not count.
    static func writeRealAddresses(
        of answer: borrowing DNSMessageView, question: borrowing QuestionView, into buffer: inout [UInt8]
    ) -> Int? {
        write(answer, question, into: &buffer) { (record, writer, output) throws(DNSMessageError) in
            if record.section == .answer {
                if case .v6(let address)? = record.address, address.mappedIPv4 != nil { return }
                if record.coveredType == .aaaa { return }
            }
            try writer.append(record, into: &output)
        }
    }

    /// Writes the answer about the name of an address behind the prefix: it is an alias of the IPv4 address's (RFC 6147 §5.3.1).
    static func writeReverse(
        of answer: borrowing DNSMessageView, _ name: DomainName, question: borrowing QuestionView,
        into buffer: inout [UInt8]
    ) -> Int? {
        let timeToLive = min(answer.minimumTimeToLive ?? .max, AbsentAddresses.usualTimeToLive)
        return write(answer, question, into: &buffer, from: name, timeToLive) {
            (record, writer, output) throws(DNSMessageError) in
            try writer.append(record, into: &output)
        }
    }

    private static func write(
        _ answer: borrowing DNSMessageView, _ question: borrowing QuestionView, into buffer: inout [UInt8],
        from alias: DomainName? = nil, _ aliasTimeToLive: UInt32 = 0,
        _ append: (borrowing RecordView, inout MessageWriter, inout MutableRawSpan) throws(DNSMessageError) -> Void
    ) -> Int? {
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        var flags = answer.header.flags
        flags.remove(.authenticData)
        do throws(DNSMessageError) {
            var writer = MessageWriter(id: 0, flags: flags)
            try writer.append(
                question: question.name, type: question.type, recordClass: question.recordClass, into: &output)
            if let alias {
                let target = alias.view
                try writer.append(
                    owner: question.name, type: .cname, target: target, timeToLive: aliasTimeToLive, into: &output)
            }
            var records = answer.records
            while let record = records.next() {
                if record.type != .opt, record.type != .tsig { try append(record, &writer, &output) }
            }
            return try writer.finish(into: &output)
        } catch {
            return nil
        }
    }
}
