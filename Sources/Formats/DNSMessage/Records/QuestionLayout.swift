import ByteAccess

/// Where the question of a message is, and what it asks for (RFC 1035 §4.1.2).
public struct QuestionLayout: Hashable, Sendable, BitwiseCopyable {
    /// Where its name is: right behind the header.
    public let name: NameLayout
    /// QTYPE.
    public let type: RecordType
    /// QCLASS.
    public let recordClass: RecordClass

    /// Where what comes behind the question begins.
    public var endOffset: Int { name.endOffset + 4 }

    /// Reads the question behind the header. A name there has nothing that a pointer could point to.
    init(checking bytes: RawSpan) throws(DNSMessageError) {
        do {
            name = try NameLayout(checking: bytes, at: DNSHeader.byteCount)
        } catch {
            // Names are read to their first pointer before it is judged: a pointer at all is what is wrong here.
            switch error {
            case .forwardPointer, .pointerIntoHeader: throw .compressedQuestionName
            default: throw error
            }
        }
        guard bytes.byteCount - name.endOffset >= 4 else { throw .truncatedQuestion }
        type = RecordType(rawValue: bytes.bigEndianUInt16(at: name.endOffset))
        recordClass = RecordClass(rawValue: bytes.bigEndianUInt16(at: name.endOffset + 2))
    }
}

/// The question of a checked message.
public struct QuestionView: ~Escapable {
    let bytes: RawSpan
    /// Where its parts are.
    public let layout: QuestionLayout

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ layout: QuestionLayout) {
        self.bytes = bytes
        self.layout = layout
    }

    /// The name that is asked about.
    public var name: DomainNameView {
        @_lifetime(copy self)
        get { DomainNameView(bytes, layout.name) }
    }

    /// Name, type and class as they are on the wire: no question's name is compressed.
    public var octets: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(layout.name.offset..<layout.endOffset) }
    }

    /// QTYPE.
    public var type: RecordType { layout.type }
    /// QCLASS.
    public var recordClass: RecordClass { layout.recordClass }

    /// True when both ask the same; the case of letters does not count.
    public func isEqual(to other: borrowing QuestionView) -> Bool {
        layout.type == other.layout.type && layout.recordClass == other.layout.recordClass
            && name.isEqual(to: other.name)
    }
}
