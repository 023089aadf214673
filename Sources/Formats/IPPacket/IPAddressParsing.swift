import ByteAccess

/// Why a text is not an address or a prefix.
public enum IPAddressError: Error, Hashable, Sendable {
    /// Not four decimal numbers of 0 to 255, without leading zeros, with dots between them.
    case invalidIPv4Address
    /// Not an address in one of the forms of RFC 4291 §2.2. A scope (`%eth0`) is not part of an address.
    case invalidIPv6Address
    /// What follows the slash is not a decimal number, without leading zeros, within the family's 32 or 128 bits.
    case invalidPrefixLength
}

extension IPv4Address {
    /// The address that `text` spells as `inet_pton` takes it: no octal, no leading zeros, no fewer than four numbers.
    public init(parsing text: some StringProtocol) throws(IPAddressError) {
        let text = String(text)
        try self.init(parsingText: text.utf8Span.bytes)
    }

    /// The address that the ASCII bytes `text` spell.
    public init(parsingText text: RawSpan) throws(IPAddressError) {
        guard let bits = text.dottedDecimal(from: 0) else { throw .invalidIPv4Address }
        self.init(bits: bits)
    }
}

extension IPv6Address {
    /// The address that `text` spells in one of the forms of RFC 4291 §2.2, `::` and a dotted decimal end included.
    public init(parsing text: some StringProtocol) throws(IPAddressError) {
        let text = String(text)
        try self.init(parsingText: text.utf8Span.bytes)
    }

    /// The address that the ASCII bytes `text` spell.
    public init(parsingText text: RawSpan) throws(IPAddressError) {
        guard let bits = text.colonHexadecimal() else { throw .invalidIPv6Address }
        self.init(high: UInt64(truncatingIfNeeded: bits >> 64), low: UInt64(truncatingIfNeeded: bits))
    }
}

extension IPAddress {
    /// The address that `text` spells: IPv6 when it has a colon, otherwise IPv4.
    public init(parsing text: some StringProtocol) throws(IPAddressError) {
        let text = String(text)
        try self.init(parsingText: text.utf8Span.bytes)
    }

    /// The address that the ASCII bytes `text` spell.
    public init(parsingText text: RawSpan) throws(IPAddressError) {
        for offset in text.byteOffsets where text.uint8(at: offset) == UInt8(ascii: ":") {
            self = .v6(try IPv6Address(parsingText: text))
            return
        }
        self = .v4(try IPv4Address(parsingText: text))
    }
}

extension RawSpan {
    /// The four numbers from `start` to the end; nil when they are anything else.
    fileprivate func dottedDecimal(from start: Int) -> UInt32? {
        var bits: UInt32 = 0
        var offset = start
        for index in 0..<4 {
            if index > 0 {
                guard offset < byteCount, uint8(at: offset) == UInt8(ascii: ".") else { return nil }
                offset += 1
            }
            guard let octet = decimal(at: &offset, maximum: 255) else { return nil }
            bits = bits << 8 | UInt32(octet)
        }
        return offset == byteCount ? bits : nil
    }

    /// The decimal number at `offset`, which moves behind it; nil without digits, with a leading zero, or above `maximum`.
    func decimal(at offset: inout Int, maximum: Int) -> Int? {
        let start = offset
        var value = 0
        while offset < byteCount, case let digit = uint8(at: offset) &- UInt8(ascii: "0"), digit < 10 {
            if offset > start && value == 0 { return nil }
            value = value * 10 + Int(digit)
            if value > maximum { return nil }
            offset += 1
        }
        return offset > start ? value : nil
    }

    /// The 128 bits of an IPv6 address that takes up the whole span; nil when it is anything else.
    fileprivate func colonHexadecimal() -> UInt128? {
        var bits: UInt128 = 0  // the groups since the start, or since the gap
        var groupCount = 0
        var beforeGap: (bits: UInt128, groupCount: Int)?
        var offset = 0
        if byteCount >= 2, uint8(at: 0) == UInt8(ascii: ":"), uint8(at: 1) == UInt8(ascii: ":") {
            beforeGap = (0, 0)
            offset = 2
        }
        while offset < byteCount {
            let start = offset
            var group: UInt16 = 0
            while offset < byteCount, let digit = hexadecimalDigit(at: offset) {
                if offset - start == 4 { return nil }
                group = group << 4 | digit
                offset += 1
            }
            if offset < byteCount, uint8(at: offset) == UInt8(ascii: ".") {
                guard let ipv4 = dottedDecimal(from: start) else { return nil }
                bits = bits << 32 | UInt128(ipv4)
                groupCount += 2
                break
            }
            if offset == start { return nil }
            bits = bits << 16 | UInt128(group)
            groupCount += 1
            if groupCount > 8 { return nil }
            if offset == byteCount { break }
            guard uint8(at: offset) == UInt8(ascii: ":") else { return nil }
            offset += 1
            if offset == byteCount { return nil }
            if uint8(at: offset) == UInt8(ascii: ":") {
                if beforeGap != nil { return nil }
                beforeGap = (bits, groupCount)
                (bits, groupCount) = (0, 0)
                offset += 1
            }
        }
        guard let beforeGap else { return groupCount == 8 ? bits : nil }
        guard beforeGap.groupCount + groupCount < 8 else { return nil }
        return beforeGap.bits << (128 - 16 * beforeGap.groupCount) | bits
    }

    private func hexadecimalDigit(at offset: Int) -> UInt16? {
        switch uint8(at: offset) {
        case let byte where byte &- UInt8(ascii: "0") < 10: UInt16(byte - UInt8(ascii: "0"))
        case let byte where (byte | 0x20) &- UInt8(ascii: "a") < 6: UInt16((byte | 0x20) - UInt8(ascii: "a") + 10)
        default: nil
        }
    }
}

extension UTF8Span {
    /// The bytes of the text.
    var bytes: RawSpan {
        @_lifetime(copy self)
        get {
            // Unsafe only for elements with padding; bytes have none.
            unsafe span.bytes
        }
    }
}
