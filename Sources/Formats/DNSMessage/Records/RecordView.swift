import ByteAccess

/// A record of a checked message.
public struct RecordView: ~Escapable {
    /// The message that it is in.
    let bytes: RawSpan
    /// Where its parts are.
    public let layout: RecordLayout

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ layout: RecordLayout) {
        self.bytes = bytes
        self.layout = layout
    }

    /// The part of the message that it is in.
    public var section: MessageSection { layout.section }
    /// TYPE.
    public var type: RecordType { layout.type }
    /// CLASS.
    public var recordClass: RecordClass { layout.recordClass }

    /// The name that it belongs to.
    public var owner: DomainNameView {
        @_lifetime(copy self)
        get { name(at: layout.offset) }
    }

    /// The seconds that it may be kept, 0 to 2³¹ − 1. A larger number on the wire counts as 0 (RFC 2181 §8).
    public var timeToLive: UInt32 { TimeToLive.effective(bytes.bigEndianUInt32(at: layout.timeToLiveOffset)) }

    /// RDATA as it is in the message; names in it may be compressed.
    public var data: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(layout.data) }
    }

    /// True when both are of one RRset: owner, type and class are the same (RFC 2181 §5).
    public func isInSameSet(as other: borrowing RecordView) -> Bool {
        layout.type == other.layout.type && layout.recordClass == other.layout.recordClass
            && owner.isEqual(to: other.owner)
    }

    /// The name at an offset where the check of the message found one.
    @_lifetime(copy self)
    func name(at offset: Int) -> DomainNameView {
        guard let layout = try? NameLayout(checking: bytes, at: offset) else {
            preconditionFailure("a name that was checked with the message")
        }
        return DomainNameView(bytes, layout)
    }
}

/// The records of a checked message, one after the other.
public struct RecordCursor: ~Escapable {
    private let bytes: RawSpan
    private var walk: RecordWalk
    private let section: MessageSection?

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ walk: RecordWalk, section: MessageSection?) {
        self.bytes = bytes
        self.walk = walk
        self.section = section
    }

    /// The next record; nil behind the last one.
    @_lifetime(copy self)
    public mutating func next() -> RecordView? {
        // The message was checked: an error cannot be.
        while let layout = try? walk.next(in: bytes) {
            if let section, layout.section != section {
                if layout.section.rawValue > section.rawValue { return nil }
                continue
            }
            return RecordView(bytes, layout)
        }
        return nil
    }
}
