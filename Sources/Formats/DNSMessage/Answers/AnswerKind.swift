import ByteAccess

/// What an answer says about its question.
public enum AnswerKind: Hashable, Sendable {
    /// There are records of the type that was asked for.
    case records
    /// The name exists, but not with that type (RFC 2308 §2.2).
    case noData
    /// There is no such name (RFC 2308 §2.1).
    case nameError
    /// The server could not, or did not want to.
    case failure(ResponseCode)
    /// The aliases go round in circles, or there are too many.
    case endlessAliases
}

extension DNSMessageView {
    /// The most aliases that are followed from the question's name.
    public static var maximumAliasCount: Int { 16 }

    /// The name at the end of the aliases that the answer section has for the question's name; the question's name itself when there
    /// are none. Nil without a question, and when there are more than ``maximumAliasCount``.
    ///
    /// Records may be in any order. A DNAME comes with the CNAME that is made of it (RFC 6672 §3.1), so that only those are followed.
    public var canonicalName: DomainNameView? {
        @_lifetime(copy self)
        get {
            guard let question else { return nil }
            var name = question.name
            if question.type == .cname || question.type == .any { return name }
            for _ in 0...Self.maximumAliasCount {
                guard let target = alias(of: name, in: question.recordClass) else { return name }
                name = target
            }
            return nil
        }
    }

    /// The target of the first CNAME of a name in the answer section.
    @_lifetime(copy self)
    public func alias(of name: borrowing DomainNameView, in recordClass: RecordClass = .internet) -> DomainNameView? {
        var records = records(in: .answer)
        while let record = records.next() {
            guard record.type == .cname, record.recordClass == recordClass else { continue }
            if record.owner.isEqual(toNameOfSameMessage: name) { return record.target }
        }
        return nil
    }

    /// What the answer says. A response code counts for the last name of a chain of aliases (RFC 6604 §3).
    public var answerKind: AnswerKind {
        let code = responseCode
        if code == .nameError { return .nameError }
        guard code == .noError else { return .failure(code) }
        if hasNothingButAnswers { return .records }
        guard let question, let name = canonicalName else { return question == nil ? .noData : .endlessAliases }
        var records = records(in: .answer)
        while let record = records.next() {
            if question.type == .any { return .records }
            if record.type == question.type, record.owner.isEqual(toNameOfSameMessage: name) { return .records }
        }
        return .noData
    }
}

extension DNSMessageView {
    /// True when each record of the answer section is of the question's own name and type, which most answers are: there are no aliases to
    /// be followed. False for anything that takes a closer look.
    private var hasNothingButAnswers: Bool {
        guard let questionLayout, header.answerCount > 0 else { return false }
        var walk = walk
        for _ in 0..<header.answerCount {
            // The message was checked: an error cannot be.
            guard let record = try? walk.next(in: bytes), record.type == questionLayout.type,
                record.recordClass == questionLayout.recordClass,
                bytes.bigEndianUInt16(at: record.offset) == 0xC000 | UInt16(truncatingIfNeeded: DNSHeader.byteCount)
            else { return false }
        }
        return true
    }
}

extension DomainNameView {
    /// True when both names are the same but for the case of ASCII letters. Names of one message are mostly pointers to the same place, and
    /// nothing more has to be looked at then.
    fileprivate func isEqual(toNameOfSameMessage other: borrowing DomainNameView) -> Bool {
        firstLabelOffset == other.firstLabelOffset || isEqual(to: other)
    }

    /// Where the first length octet is, behind all pointers.
    private var firstLabelOffset: Int {
        var offset = layout.offset
        // The name has been checked: pointers lead back, and come to an end.
        while bytes.uint8(at: offset) >= 0xC0 { offset = Int(bytes.bigEndianUInt16(at: offset) & 0x3FFF) }
        return offset
    }
}
