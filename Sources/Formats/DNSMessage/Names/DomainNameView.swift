import ByteAccess

/// A name whose lengths and pointers have been checked: no accessor traps. It is read where it is, through its pointers.
///
/// Octets are arbitrary: zeros, dots and bytes above 0x7F are as good as letters (RFC 2181 §11). Names are equal when they differ
/// only in the case of ASCII letters (RFC 4343).
public struct DomainNameView: ~Escapable {
    /// The message, or other bytes that the name's offsets count in.
    let bytes: RawSpan
    /// Where it is and how long.
    public let layout: NameLayout

    /// Checks the name at `offset` of a message: 255 octets at most, pointers backwards only.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan, at offset: Int) throws(DNSMessageError) {
        precondition(offset >= 0)
        guard bytes.byteCount <= DNSMessageView.maximumByteCount else { throw .messageTooLong }
        layout = try NameLayout(checking: bytes, at: offset)
        self.bytes = bytes
    }

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ layout: NameLayout) {
        self.bytes = bytes
        self.layout = layout
    }

    /// The number of labels, the root not counted: 0 to 127.
    public var labelCount: Int { layout.labelCount }

    /// The length in octets without compression: 1 to 255.
    public var length: Int { layout.length }

    /// True for the root.
    public var isRoot: Bool { layout.labelCount == 0 }

    /// The labels, the host's first and without the root.
    public var labels: LabelCursor {
        @_lifetime(copy self)
        get { LabelCursor(bytes, walk: LabelWalk(at: layout.offset)) }
    }

    /// The labels from the one at `index` on; none when there are not so many.
    @_lifetime(copy self)
    public func labels(from index: Int) -> LabelCursor {
        LabelCursor(bytes, walk: walk(from: index))
    }

    /// Writes the name without compression to `offset` of `output`, with letters as they are or in lower case.
    ///
    /// - Returns: The offset behind it.
    @discardableResult
    public func write(into output: inout MutableRawSpan, at offset: Int = 0, lowercased: Bool = false)
        throws(DNSMessageError) -> Int
    {
        guard offset >= 0, length <= output.byteCount - offset else { throw .outputTooSmall }
        guard layout.isCompressed else {
            output.copy(bytes.extracting(layout.offset..<layout.offset + length), to: offset)
            // Length octets are below all letters.
            if lowercased { output.lowercaseASCII(offset..<offset + length) }
            return offset + length
        }
        var walk = LabelWalk(at: layout.offset)
        var position = offset
        while let label = walk.next(in: bytes) {
            output.store(UInt8(truncatingIfNeeded: label.count), at: position)
            position += 1
            for index in label {
                let octet = bytes.uint8(at: index)
                output.store(lowercased ? octet.lowercasedASCII : octet, at: position)
                position += 1
            }
        }
        output.store(0, at: position)
        return position + 1
    }

    /// A walk that begins at the label with this index.
    func walk(from index: Int) -> LabelWalk {
        var walk = LabelWalk(at: layout.offset)
        for _ in 0..<max(index, 0) {
            guard walk.next(in: bytes) != nil else { break }
        }
        return walk
    }
}

/// The place between two labels of a checked name.
struct LabelWalk: BitwiseCopyable {
    /// Where the next length octet or pointer is.
    private(set) var position: Int

    init(at offset: Int) {
        position = offset
    }

    /// The octets of the next label, without its length octet; nil at the root. The name has been checked: all steps are within
    /// `bytes`, and the pointers come to an end.
    @inline(__always)
    mutating func next(in bytes: RawSpan) -> Range<Int>? {
        while true {
            let octet = Int(bytes.uint8(at: position))
            if octet == 0 { return nil }
            if octet < 0x40 {
                let start = position + 1
                position = start + octet
                return start..<position
            }
            position = Int(bytes.bigEndianUInt16(at: position) & 0x3FFF)
        }
    }
}

/// The labels of a name, one after the other.
public struct LabelCursor: ~Escapable {
    private let bytes: RawSpan
    private var walk: LabelWalk

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, walk: LabelWalk) {
        self.bytes = bytes
        self.walk = walk
    }

    /// The octets of the next label, 1 to 63; nil behind the last one.
    @_lifetime(copy self)
    public mutating func next() -> RawSpan? {
        guard let label = walk.next(in: bytes) else { return nil }
        return bytes.extracting(label)
    }
}
