internal import ByteAccess
internal import DNSMessage

/// A name in lower case together with where its labels begin, so that each of its ends can be looked up.
struct CanonicalName: ~Escapable {
    /// The name on the wire, in lower case, without compression.
    let bytes: RawSpan
    /// Where the length octet of each label is. It is read by way of its span: to read an element itself copies all of them.
    private var starts = InlineArray<128, UInt8>(repeating: 0)
    /// The number of labels, the root not counted.
    let labelCount: Int

    /// The name at the start of `bytes`, which is in order: lower case, 255 octets at most, with the root at its end.
    @_lifetime(copy bytes)
    init(lowercased bytes: RawSpan) {
        self.bytes = bytes
        var (offset, count) = (0, 0)
        while offset < bytes.byteCount, bytes.uint8(at: offset) != 0 {
            // A name has at most 127 labels, and begins its last one before its 255th octet.
            starts[count] = UInt8(truncatingIfNeeded: offset)
            count += 1
            offset += 1 + Int(bytes.uint8(at: offset))
        }
        labelCount = count
    }

    /// The octets of a label without its length octet; `index` 0 is the host's.
    @_lifetime(copy self)
    func label(_ index: Int) -> RawSpan {
        let start = Int(starts.span[index])
        return bytes.extracting(start + 1..<start + 1 + Int(bytes.uint8(at: start)))
    }

    /// The last `count` labels with the root.
    @_lifetime(copy self)
    func suffix(_ count: Int) -> RawSpan {
        guard count > 0 else { return bytes.extracting(last: 1) }
        return bytes.extracting(Int(starts.span[labelCount - count])...)
    }
}

extension CacheKey {
    /// The name that is asked about, in lower case: it is behind the flags, the type and the class.
    var nameBytes: RawSpan {
        @_lifetime(borrow self)
        get { bytes.extracting(5...) }
    }
}
