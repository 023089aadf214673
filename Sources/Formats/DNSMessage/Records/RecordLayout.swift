import ByteAccess

/// Where the parts of a record are (RFC 1035 §4.1.3). All offsets count from the start of the message.
public struct RecordLayout: Hashable, Sendable, BitwiseCopyable {
    /// The part of the message that it is in.
    public let section: MessageSection
    private let start: UInt32
    private let nameEnd: UInt32
    private let end: UInt32
    /// TYPE.
    public let type: RecordType
    /// CLASS; in an OPT record the size of UDP payloads.
    public let recordClass: RecordClass

    /// Where its owner's name begins.
    public var offset: Int { Int(start) }
    /// Where its type is: behind the owner's name. Class, TTL and the length of the data are two, four and eight bytes behind.
    public var typeOffset: Int { Int(nameEnd) }
    /// Where what comes behind the record begins.
    public var endOffset: Int { Int(end) }
    /// RDATA.
    public var data: Range<Int> { typeOffset + 10..<endOffset }
    /// Where the TTL is.
    public var timeToLiveOffset: Int { typeOffset + 4 }

    /// Reads the fixed fields of the record at `offset`. Its owner's name is passed over, its data is not looked at.
    init(parsing bytes: RawSpan, at offset: Int, section: MessageSection) throws(DNSMessageError) {
        guard offset < bytes.byteCount else { throw .truncatedRecord }
        let end = try NameLayout.end(ofNameIn: bytes, at: offset)
        try self.init(parsing: bytes, at: offset, nameEnd: end, section: section)
    }

    /// Reads the fixed fields that begin at `nameEnd`.
    init(parsing bytes: RawSpan, at offset: Int, nameEnd: Int, section: MessageSection) throws(DNSMessageError) {
        guard bytes.byteCount - nameEnd >= 10 else { throw .truncatedRecord }
        let start = nameEnd + 10
        let length = Int(bytes.bigEndianUInt16(at: nameEnd + 8))
        guard length <= bytes.byteCount - start else { throw .recordDataBeyondMessage }
        self.section = section
        self.start = UInt32(truncatingIfNeeded: offset)
        self.nameEnd = UInt32(truncatingIfNeeded: nameEnd)
        end = UInt32(truncatingIfNeeded: start + length)
        type = RecordType(rawValue: bytes.bigEndianUInt16(at: nameEnd))
        recordClass = RecordClass(rawValue: bytes.bigEndianUInt16(at: nameEnd + 2))
    }
}

/// The place between two records of a message, to go from one to the next without a look at names and data.
struct RecordWalk: BitwiseCopyable {
    private var offset: Int
    private var remaining: (answer: UInt16, authority: UInt16, additional: UInt16)

    /// In front of the first record of a message whose header says how many there are.
    init(_ header: DNSHeader, at offset: Int) {
        self.offset = offset
        remaining = (header.answerCount, header.authorityCount, header.additionalCount)
    }

    /// In front of the first record of a message that need not have been checked.
    init(parsing bytes: RawSpan) throws(DNSMessageError) {
        let header = try DNSHeader(parsing: bytes)
        var offset = DNSHeader.byteCount
        for _ in 0..<header.questionCount {
            offset = try NameLayout.end(ofNameIn: bytes, at: offset) + 4
            guard offset <= bytes.byteCount else { throw .truncatedQuestion }
        }
        self.init(header, at: offset)
    }

    /// The section that the next record is in; nil behind the last one.
    private mutating func nextSection() -> MessageSection? {
        if remaining.answer > 0 {
            remaining.answer -= 1
            return .answer
        }
        if remaining.authority > 0 {
            remaining.authority -= 1
            return .authority
        }
        guard remaining.additional > 0 else { return nil }
        remaining.additional -= 1
        return .additional
    }

    /// The next record; nil behind the last one.
    mutating func next(in bytes: RawSpan) throws(DNSMessageError) -> RecordLayout? {
        guard let section = nextSection() else { return nil }
        let layout = try RecordLayout(parsing: bytes, at: offset, section: section)
        offset = layout.endOffset
        return layout
    }

    /// The next record, its owner's name and its data checked too; nil behind the last one.
    mutating func nextChecked<let wordCount: Int>(
        in bytes: RawSpan, names: inout NameStarts<wordCount>
    ) throws(DNSMessageError) -> RecordLayout? {
        guard let section = nextSection() else { return nil }
        guard offset < bytes.byteCount else { throw .truncatedRecord }
        let owner = try NameLayout(checking: bytes, at: offset)
        try names.add(owner, in: bytes)
        let layout = try RecordLayout(parsing: bytes, at: offset, nameEnd: owner.endOffset, section: section)
        try RecordDataShape(of: layout.type).check(layout.data, in: bytes, names: &names)
        offset = layout.endOffset
        return layout
    }

    /// True when there is no record behind the last one that was returned.
    var isAtEnd: Bool { remaining == (0, 0, 0) }
    /// Where the next record begins, or the message ends.
    var position: Int { offset }
}
