import ByteAccess

/// Where a checked name is in a message, and how long it is (RFC 1035 §3.1 and §4.1.4).
public struct NameLayout: Hashable, Sendable, BitwiseCopyable {
    /// The longest name in octets, its length octets counted.
    @inlinable public static var maximumLength: Int { 255 }
    /// The most labels that fit into a name, the root not counted.
    @inlinable public static var maximumLabelCount: Int { 127 }

    // Layouts are kept with queries that wait, and handed on by value: they are as small as their numbers allow.
    private let start: UInt32
    private let end: UInt32
    private let octetCount: UInt8
    private let labels: UInt8
    /// True when it ends in a pointer.
    public let isCompressed: Bool

    /// Where its first length octet or pointer is.
    public var offset: Int { Int(start) }
    /// Where what comes behind it begins: behind its root octet or behind its first pointer.
    public var endOffset: Int { Int(end) }
    /// Its length in octets when nothing is compressed: 1, for the root, to 255.
    public var length: Int { Int(octetCount) }
    /// The number of its labels, the root not counted: 0 to 127.
    public var labelCount: Int { Int(labels) }

    /// Follows the name at `offset` to its end.
    ///
    /// Pointers may only go back: each to labels that end before those begin that the pointer ends. So the walk ends, whatever the bytes,
    /// and nothing in it depends on what is behind the name.
    init(checking bytes: RawSpan, at offset: Int) throws(DNSMessageError) {
        var position = offset
        var start = offset
        var limit = bytes.byteCount
        var end = -1
        var length = 1
        var labels = 0
        var pointers = 0
        while true {
            guard position < limit else { throw pointers == 0 ? .truncatedName : .forwardPointer }
            let octet = Int(bytes.uint8(at: position))
            if octet == 0 { break }
            if octet < 0x40 {
                length += octet + 1
                guard length <= Self.maximumLength else { throw .nameTooLong }
                labels += 1
                position += octet + 1
                continue
            }
            guard octet >= 0xC0 else { throw .reservedLabelType }
            guard position + 2 <= limit else { throw pointers == 0 ? .truncatedName : .forwardPointer }
            let target = Int(bytes.bigEndianUInt16(at: position) & 0x3FFF)
            guard target < start else { throw .forwardPointer }
            guard target >= DNSHeader.byteCount else { throw .pointerIntoHeader }
            pointers += 1
            guard pointers <= Self.maximumLabelCount else { throw .tooManyPointers }
            if end < 0 { end = position + 2 }
            position = target
            limit = start
            start = target
        }
        // Messages have 65,535 bytes at most; of anything longer, offsets that do not fit would lead nowhere else than out of bounds.
        self.start = UInt32(truncatingIfNeeded: offset)
        self.end = UInt32(truncatingIfNeeded: end < 0 ? position + 1 : end)
        octetCount = UInt8(truncatingIfNeeded: length)
        self.labels = UInt8(truncatingIfNeeded: labels)
        isCompressed = end >= 0
    }

    /// Where what comes behind the name at `offset` begins. Its length and its pointers are not looked at.
    static func end(ofNameIn bytes: RawSpan, at offset: Int) throws(DNSMessageError) -> Int {
        var position = offset
        while position < bytes.byteCount {
            let octet = bytes.uint8(at: position)
            if octet == 0 { return position + 1 }
            guard octet < 0x40 else {
                guard octet >= 0xC0 else { throw .reservedLabelType }
                guard position + 2 <= bytes.byteCount else { throw .truncatedName }
                return position + 2
            }
            position += Int(octet) + 1
        }
        throw .truncatedName
    }

    /// Where the first pointer of the name at `offset` leads; nil when it is not compressed.
    static func firstPointer(ofNameIn bytes: RawSpan, at offset: Int) throws(DNSMessageError) -> Int? {
        let end = try end(ofNameIn: bytes, at: offset)
        var position = offset
        while position < end - 2 {
            let octet = bytes.uint8(at: position)
            if octet >= 0xC0 { break }
            position += Int(octet) + 1
        }
        guard position == end - 2, bytes.uint8(at: position) >= 0xC0 else { return nil }
        return Int(bytes.bigEndianUInt16(at: position) & 0x3FFF)
    }
}
