public import ByteAccess

/// The twelve bytes that every message begins with (RFC 1035 §4.1.1).
public struct DNSHeader: Hashable, Sendable, BitwiseCopyable {
    /// The length of the header in bytes.
    @inlinable public static var byteCount: Int { 12 }

    /// What an answer repeats, for its client to know which query it is for.
    public var id: UInt16
    /// Bits, opcode and the low bits of the response code.
    public var flags: DNSFlags
    /// QDCOUNT, the number of questions.
    public var questionCount: UInt16
    /// ANCOUNT, the number of records in the answer section.
    public var answerCount: UInt16
    /// NSCOUNT, the number of records in the authority section.
    public var authorityCount: UInt16
    /// ARCOUNT, the number of records in the additional section.
    public var additionalCount: UInt16

    /// A header with one question and no record, unless said otherwise.
    @inlinable
    public init(
        id: UInt16, flags: DNSFlags, questionCount: UInt16 = 1, answerCount: UInt16 = 0, authorityCount: UInt16 = 0,
        additionalCount: UInt16 = 0
    ) {
        self.id = id
        self.flags = flags
        self.questionCount = questionCount
        self.answerCount = answerCount
        self.authorityCount = authorityCount
        self.additionalCount = additionalCount
    }

    /// Reads the header at the start of `bytes`; throws ``DNSMessageError/truncatedHeader`` when there are fewer than twelve.
    @inlinable
    public init(parsing bytes: RawSpan) throws(DNSMessageError) {
        guard bytes.byteCount >= Self.byteCount else { throw .truncatedHeader }
        id = bytes.bigEndianUInt16(at: 0)
        flags = DNSFlags(rawValue: bytes.bigEndianUInt16(at: 2))
        questionCount = bytes.bigEndianUInt16(at: 4)
        answerCount = bytes.bigEndianUInt16(at: 6)
        authorityCount = bytes.bigEndianUInt16(at: 8)
        additionalCount = bytes.bigEndianUInt16(at: 10)
    }

    /// Writes the header to the first twelve bytes of `output`. Traps when there are fewer.
    @inlinable
    public func store(into output: inout MutableRawSpan) {
        output.storeBigEndian(id, at: 0)
        output.storeBigEndian(flags.rawValue, at: 2)
        output.storeBigEndian(questionCount, at: 4)
        output.storeBigEndian(answerCount, at: 6)
        output.storeBigEndian(authorityCount, at: 8)
        output.storeBigEndian(additionalCount, at: 10)
    }

    /// The number of records in a section.
    @inlinable
    public subscript(section: MessageSection) -> UInt16 {
        get {
            switch section {
            case .answer: answerCount
            case .authority: authorityCount
            case .additional: additionalCount
            }
        }
        set {
            switch section {
            case .answer: answerCount = newValue
            case .authority: authorityCount = newValue
            case .additional: additionalCount = newValue
            }
        }
    }
}

/// The parts of a message that hold records, in their order (RFC 1035 §4.1).
public enum MessageSection: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    case answer = 0
    case authority = 1
    case additional = 2
}
