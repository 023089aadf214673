import ByteAccess

/// Why a message is not the answer to a query (RFC 5452 §9.1). Such a message reaches no client.
public enum AnswerMismatch: Error, Hashable, Sendable {
    /// QR is clear.
    case notAnAnswer
    /// The ID is another one.
    case otherID
    /// The opcode is not QUERY.
    case otherOpcode
    /// There is no question: servers that cannot read a query answer so.
    case noQuestion
    /// Name, type or class of the question is another.
    case otherQuestion
    /// The question is the same but for the case of its letters, which was to be kept.
    case otherCase
}

extension DNSMessageView {
    /// Throws when this is not an answer to the query with this ID and question.
    ///
    /// - Parameter matchingCase: True when the case of letters counts, as when it was mixed on purpose.
    public func check(
        isAnswerTo question: borrowing QuestionView, id: UInt16, matchingCase: Bool = false
    ) throws(AnswerMismatch) {
        guard header.flags.contains(.response) else { throw .notAnAnswer }
        guard header.id == id else { throw .otherID }
        guard header.flags.opcode == .query else { throw .otherOpcode }
        guard let ours = self.question else { throw .noQuestion }
        guard ours.isEqual(to: question) else { throw .otherQuestion }
        guard !matchingCase || ours.name.hasSameOctets(as: question.name) else { throw .otherCase }
    }

    /// True when this is an answer with the ID and the question of a query, octet by octet, which is nothing but a header and a question.
    /// It is the answer to the query then, whether case counts or not.
    public func repeatsQuestion(of query: RawSpan) -> Bool {
        guard let questionLayout, questionLayout.endOffset == query.byteCount, header.flags.contains(.response),
            header.flags.opcode == .query, header.id == query.bigEndianUInt16(at: 0)
        else { return false }
        return bytes.extracting(DNSHeader.byteCount..<query.byteCount)
            .hasSameBytes(as: query.extracting(DNSHeader.byteCount...))
    }
}
