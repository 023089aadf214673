internal import ByteAccess

/// True when both spans hold the same bytes. The time it takes depends on the lengths alone.
public func constantTimeEqual(_ left: RawSpan, _ right: RawSpan) -> Bool {
    guard left.byteCount == right.byteCount else { return false }
    var difference: UInt8 = 0
    for offset in 0..<left.byteCount { difference |= left.uint8(at: offset) ^ right.uint8(at: offset) }
    return difference == 0
}

/// True when every byte is zero. The time it takes depends on the length alone.
public func isAllZero(_ bytes: RawSpan) -> Bool {
    var union: UInt8 = 0
    for offset in 0..<bytes.byteCount { union |= bytes.uint8(at: offset) }
    return union == 0
}
