public import DNSMessage

/// Reads each new answer with ldns for policy, after the view has accepted it: two readers have to agree before a client sees it, on what
/// is in every record, and on where each of them ends.
public struct LDNSAnswerReader: AnswerReader {
    /// A reader.
    public init() {}

    /// What ldns finds in the answer. Throws when ldns does not take one of its records, or takes it for shorter or longer. OPT is for one
    /// hop, and no record of the answer.
    public func facts(of answer: borrowing DNSMessageView) throws(LDNSError) -> AnswerFacts {
        var facts = AnswerFacts()
        var records = answer.records
        while let record = records.next() {
            if record.type == .opt { continue }
            let read = try LDNSWireRecord(record.layout, of: answer)
            try read.collect(isAnswer: record.section == .answer, into: &facts)
        }
        return facts
    }
}
