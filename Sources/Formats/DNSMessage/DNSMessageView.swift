import ByteAccess

/// A whole message (RFC 1035 §4) that has been checked from its first byte to its last: no accessor of it, of its records or of
/// their names traps, and every name and every field that a type is known to have is within its bounds.
///
/// What is checked: the counts against what is there; one question at most; every name, in owners and in the data of all types
/// that have names; the data of the types in ``RecordDataShape``; that OPT is there at most once, in the additional section,
/// owned by the root and with whole options; that TSIG is the last record. Types that are not known are opaque (RFC 3597).
///
/// Bytes behind the message are no part of it: ``bytes`` ends where the last record does.
public struct DNSMessageView: ~Escapable {
    /// The largest message in bytes: more cannot be framed (RFC 1035 §4.2.2).
    public static var maximumByteCount: Int { 65_535 }

    /// The message, without what was behind it.
    public let bytes: RawSpan
    /// The fixed fields.
    public let header: DNSHeader
    /// Where the question is; nil when there is none.
    public let questionLayout: QuestionLayout?
    /// Where the OPT record is; nil when there is none.
    public let optLayout: RecordLayout?

    /// Checks a message that is at the start of `bytes`.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(DNSMessageError) {
        let header = try DNSHeader(parsing: bytes)
        guard bytes.byteCount <= Self.maximumByteCount else { throw .messageTooLong }
        guard header.questionCount <= 1 else { throw .invalidQuestionCount }
        let question = header.questionCount == 0 ? nil : try QuestionLayout(checking: bytes)
        self.header = header
        questionLayout = question
        let end: Int
        if bytes.byteCount <= 1024 {
            (end, optLayout) = try Self.checkRecords(bytes, header, question, NameStarts<16>())
        } else {
            (end, optLayout) = try Self.checkRecords(bytes, header, question, NameStarts<256>())
        }
        self.bytes = bytes.extracting(..<end)
    }

    /// Returns where the last record ends, and where the OPT record is.
    private static func checkRecords<let wordCount: Int>(
        _ bytes: RawSpan, _ header: DNSHeader, _ question: QuestionLayout?, _ names: consuming NameStarts<wordCount>
    ) throws(DNSMessageError) -> (end: Int, opt: RecordLayout?) {
        var names = names
        if let question { try names.add(question.name, in: bytes) }
        var walk = RecordWalk(header, at: question?.endOffset ?? DNSHeader.byteCount)
        var opt: RecordLayout?
        while let record = try walk.nextChecked(in: bytes, names: &names) {
            if record.type == .opt {
                guard record.section == .additional else { throw .misplacedOPT }
                guard opt == nil else { throw .repeatedOPT }
                guard record.typeOffset == record.offset + 1 else { throw .namedOPT }
                opt = record
            } else if record.type == .tsig {
                guard record.section == .additional, walk.isAtEnd else { throw .misplacedTSIG }
            }
        }
        return (walk.position, opt)
    }

    /// The question; nil when there is none.
    public var question: QuestionView? {
        @_lifetime(copy self)
        get {
            guard let questionLayout else { return nil }
            return QuestionView(bytes, questionLayout)
        }
    }

    /// All records, in the order of the message.
    public var records: RecordCursor {
        @_lifetime(copy self)
        get { RecordCursor(bytes, walk, section: nil) }
    }

    /// The records of one section.
    @_lifetime(copy self)
    public func records(in section: MessageSection) -> RecordCursor {
        RecordCursor(bytes, walk, section: section)
    }

    /// The OPT record; nil when there is none.
    public var edns: EDNSView? {
        @_lifetime(copy self)
        get {
            guard let optLayout else { return nil }
            return EDNSView(bytes, optLayout)
        }
    }

    /// The whole response code: the header's four bits, and those of the OPT record when there is one.
    public var responseCode: ResponseCode {
        let low = header.flags.responseCode
        guard let edns else { return low }
        return ResponseCode(rawValue: UInt16(edns.extendedResponseCode) << 4 | low.rawValue)
    }

    var walk: RecordWalk { RecordWalk(header, at: questionLayout?.endOffset ?? DNSHeader.byteCount) }
}
