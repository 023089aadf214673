/// An IPv6 address, without a scope.
public struct IPv6Address: Hashable, Sendable, BitwiseCopyable {
    /// The first eight octets as one integer in host order.
    public var high: UInt64
    /// The last eight octets as one integer in host order.
    public var low: UInt64

    /// The address whose halves, in host order, are `high` and `low`.
    @inlinable
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// `::`.
    @inlinable
    public static var unspecified: Self { Self(high: 0, low: 0) }

    /// `::1`.
    @inlinable
    public static var loopback: Self { Self(high: 0, low: 1) }

    /// True for `::`.
    @inlinable
    public var isUnspecified: Bool { high | low == 0 }

    /// True for `::1`.
    @inlinable
    public var isLoopback: Bool { high == 0 && low == 1 }

    /// True for ff00::/8 (RFC 4291 §2.7).
    @inlinable
    public var isMulticast: Bool { high >> 56 == 0xFF }

    /// True for fe80::/10 (RFC 4291 §2.5.6).
    @inlinable
    public var isLinkLocal: Bool { high >> 54 == 0xFE80 >> 6 }

    /// The address inside ::ffff:0:0/96 (RFC 4291 §2.5.5.2); nil when this is not an IPv4-mapped address.
    @inlinable
    public var mappedIPv4: IPv4Address? {
        high == 0 && low >> 32 == 0xFFFF ? IPv4Address(bits: UInt32(truncatingIfNeeded: low)) : nil
    }

    /// The eight groups of the text form: `index` 0 is the first. Only the low three bits of `index` count.
    @inlinable
    func group(_ index: Int) -> UInt16 {
        let half = index & 4 == 0 ? high : low
        return UInt16(truncatingIfNeeded: half >> UInt64(48 - 16 * (index & 3)))
    }
}

extension IPv6Address: CustomStringConvertible {
    /// The canonical text of RFC 5952: lower case, no leading zeros, the first of the longest runs of two or more zero groups
    /// as `::`. IPv4-mapped and IPv4-compatible addresses end in dotted decimal, as `inet_ntop` prints them.
    public var description: String {
        let run = longestZeroRun
        let endsInIPv4 = high == 0 && (low >> 32 == 0xFFFF || (low >> 32 == 0 && low >> 16 != 0))
        let groupCount = endsInIPv4 ? 6 : 8
        var text = ""
        var index = 0
        while index < groupCount {
            if index == run.lowerBound && !run.isEmpty {
                text += "::"
                index = run.upperBound
                continue
            }
            if index > 0 && index != run.upperBound { text += ":" }
            text += String(group(index), radix: 16)
            index += 1
        }
        if endsInIPv4 {
            if run.upperBound != 6 { text += ":" }
            text += IPv4Address(bits: UInt32(truncatingIfNeeded: low)).description
        }
        return text
    }

    /// The first of the longest runs of at least two zero groups; empty when there is none.
    private var longestZeroRun: Range<Int> {
        var longest = 0..<0
        var start = 0
        for index in 0..<8 {
            if group(index) != 0 {
                start = index + 1
            } else if index + 1 - start > max(longest.count, 1) {
                longest = start..<index + 1
            }
        }
        return longest
    }
}
