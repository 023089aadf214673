public import DNSMessage

/// Reads each new answer with ldns for policy, after the view has accepted it: two readers have to agree before a client sees it.
public struct LDNSAnswerReader: AnswerReader {
    /// A reader.
    public init() {}

    /// What ldns finds in the answer. Throws when ldns does not take it.
    public func facts(of answer: borrowing DNSMessageView) throws(LDNSError) -> AnswerFacts {
        try LDNSPacket(answer).facts
    }
}
