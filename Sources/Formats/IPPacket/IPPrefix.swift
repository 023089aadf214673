import ByteAccess

/// A range of addresses that have their first bits in common: 10.0.0.0/8 (RFC 4632), 2001:db8::/32 (RFC 4291 §2.3).
public struct IPPrefix: Hashable, Sendable, BitwiseCopyable {
    /// The first address of the range: its bits behind `length` are zero.
    public let address: IPAddress
    /// The number of bits in common: 0 to 32, or 0 to 128.
    public let length: UInt8

    /// The range of `length` bits that `address` lies in. Traps when `length` is beyond the family's 32 or 128.
    @inlinable
    public init(address: IPAddress, length: UInt8) {
        precondition(Int(length) <= address.bitWidth, "a prefix longer than its address")
        self.address = address.masked(to: Int(length))
        self.length = length
    }

    /// The range that holds `address` alone.
    @inlinable
    public init(host address: IPAddress) {
        self.address = address
        self.length = UInt8(truncatingIfNeeded: address.bitWidth)
    }

    /// The range that `text` spells: an address, then a slash and a length, or the whole length without them. Bits behind the
    /// length may be set in the text; the range is the one they lie in.
    public init(parsing text: some StringProtocol) throws(IPAddressError) {
        let text = String(text)
        try self.init(parsingText: text.utf8Span.bytes)
    }

    /// The range that the ASCII bytes `text` spell.
    public init(parsingText text: RawSpan) throws(IPAddressError) {
        for offset in text.byteOffsets where text.uint8(at: offset) == UInt8(ascii: "/") {
            let address = try IPAddress(parsingText: text.extracting(..<offset))
            var end = offset + 1
            guard let length = text.decimal(at: &end, maximum: address.bitWidth), end == text.byteCount else {
                throw .invalidPrefixLength
            }
            self.init(address: address, length: UInt8(truncatingIfNeeded: length))
            return
        }
        self.init(host: try IPAddress(parsingText: text))
    }

    /// True when `other` is of the same family and has the same first `length` bits.
    @inlinable
    public func contains(_ other: IPAddress) -> Bool {
        other.version == address.version && other.masked(to: Int(length)) == address
    }

    /// True when every address of `other` is in this range.
    @inlinable
    public func contains(_ other: IPPrefix) -> Bool {
        other.length >= length && contains(other.address)
    }
}

extension IPPrefix: CustomStringConvertible {
    /// The first address, a slash and the length.
    public var description: String { "\(address)/\(length)" }
}

extension IPAddress {
    /// The address with all bits behind the first `length` zero; `length` is at most the family's.
    @inlinable
    func masked(to length: Int) -> IPAddress {
        switch self {
        case .v4(let address):
            // Shifts by the width or more give zero: these are Swift's checked-range shifts, not the machine's.
            return .v4(IPv4Address(bits: address.bits & ~(UInt32.max >> length)))
        case .v6(let address):
            let low = address.low & ~(UInt64.max >> max(length - 64, 0))
            return .v6(IPv6Address(high: address.high & ~(UInt64.max >> length), low: length > 64 ? low : 0))
        }
    }
}
