internal import ByteAccess
internal import DNSMessage

/// Takes out of answers what policy does not want clients to see.
///
/// What stays is the same, octet by octet but for the compression of names. A changed RRset is not the one that was signed: its
/// signatures go with what was taken out, and AD is cleared.
struct AnswerRewriter: Sendable {
    /// What was made of an answer.
    enum Outcome: Equatable {
        /// There is nothing to be taken out.
        case unchanged
        /// The rest was written; its length in bytes.
        case written(Int)
        /// The rest does not fit into a message.
        case impossible
    }

    /// True when there are no IPv6 addresses for clients.
    let blocksIPv6: Bool
    private let edit: ServiceBindingEdit

    /// A rewriter that takes out what a configuration says.
    init(_ rewriting: AnswerRewriting = AnswerRewriting()) {
        blocksIPv6 = rewriting.blocksIPv6
        edit = rewriting.serviceBindingEdit
    }

    /// Writes what is left of a checked answer without an OPT record to a buffer that has room for any, when something goes. Nothing
    /// may be left of what was asked for: then the answer says that there is none, for as long as what was taken out would have lived.
    func rewrite(_ answer: RawSpan, into buffer: inout [UInt8]) -> Outcome {
        // Without IPv6 addresses there are no hints at them: there is an edit whenever there is anything to do.
        guard !edit.isEmpty else { return .unchanged }
        guard let answer = try? DNSMessageView(checking: answer) else { return .impossible }
        let changes = changes(of: answer)
        guard !changes.sets.isEmpty else { return .unchanged }
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        do throws(DNSMessageError) {
            return .written(try write(answer, changes, into: &output))
        } catch {
            return .impossible
        }
    }

    /// What changes in an answer.
    private struct Changes {
        var sets = ChangedSets()
        /// True when nothing is left of the records that were asked for.
        var leavesNothing = false
        /// The smallest TTL of the records that go, in seconds.
        var timeToLive = AnswerNormalizer.longest.negative
    }

    private func effect(on record: borrowing RecordView) -> ServiceBindingEdit.Effect {
        if blocksIPv6, record.type == .aaaa { return .unusable }
        return edit.effect(on: record)
    }

    private func changes(of answer: borrowing DNSMessageView) -> Changes {
        var changes = Changes()
        let asked = answer.question?.type
        var hasRecords = false
        var records = answer.records
        while let record = records.next() {
            let effect = effect(on: record)
            if effect != .unchanged { changes.sets.add(record, in: answer.bytes) }
            if effect == .unusable {
                changes.timeToLive = min(changes.timeToLive, record.timeToLive)
            } else if record.section == .answer, record.type == asked || asked == .any && record.type != .rrsig {
                // What the aliases lead to is all that can be of the type that was asked for, but in odd answers.
                hasRecords = true
            }
        }
        changes.leavesNothing = !hasRecords && answer.answerKind == .records
        return changes
    }

    private func write(
        _ answer: borrowing DNSMessageView, _ changes: Changes, into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        var flags = answer.header.flags
        flags.remove(.authenticData)
        flags.insert(changes.leavesNothing ? RewritingMark.filtered.flag : RewritingMark.forged.flag)
        var writer = MessageWriter(id: answer.header.id, flags: flags)
        if let question = answer.question {
            try writer.append(
                question: question.name, type: question.type, recordClass: question.recordClass, into: &output)
        }
        var needsAuthority = changes.leavesNothing
        var records = answer.records
        while let record = records.next() {
            if needsAuthority, record.section == .additional {
                try appendAuthority(of: answer, changes, &writer, into: &output)
                needsAuthority = false
            }
            if let type = record.coveredType, changes.sets.contain(record.owner, type, in: answer.bytes) { continue }
            switch effect(on: record) {
            case .unchanged: try writer.append(record, into: &output)
            case .changed: try writer.append(record, applying: edit, into: &output)
            case .unusable: break
            }
        }
        if needsAuthority { try appendAuthority(of: answer, changes, &writer, into: &output) }
        return try writer.finish(into: &output)
    }

    private func appendAuthority(
        of answer: borrowing DNSMessageView, _ changes: Changes, _ writer: inout MessageWriter,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        guard let zone = answer.canonicalName else { return }
        try writer.append(emptyZone: zone, timeToLive: changes.timeToLive, into: &output)
    }
}
