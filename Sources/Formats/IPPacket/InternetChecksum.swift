import ByteAccess

/// The one's complement sum of RFC 1071, as IP, TCP, UDP and ICMP use it.
///
/// Bytes are summed in memory order, eight at a time, whatever their alignment; only the result is put in host order. The
/// sum does not depend on the order of additions, so that headers, pseudo-headers and payload can be added as they come.
public struct InternetChecksum: Equatable, Sendable, BitwiseCopyable {
    /// The sum of words in memory order, modulo 2⁶⁴ − 1; zero only when everything added was zero.
    @usableFromInline
    var sum: UInt64

    /// A sum of nothing.
    @inlinable
    public init() {
        sum = 0
    }

    /// The sum of the pseudo-header that TCP and UDP (RFC 9293 §3.1, RFC 768) and ICMPv6 (RFC 8200 §8.1) put before their own
    /// header. `source` and `destination` are of one family; `length` is that of the transport header and payload, in bytes.
    @inlinable
    public init(
        pseudoHeaderSource source: IPAddress, destination: IPAddress, protocol protocolNumber: IPProtocol, length: Int
    ) {
        sum = 0
        add(source)
        add(destination)
        add(UInt16(protocolNumber.rawValue))
        add(word: UInt64(UInt32(truncatingIfNeeded: length).bigEndian))
    }

    /// Adds `bytes`. An odd last byte counts as the high half of a word, so only the last piece of a whole may be odd.
    public mutating func add(_ bytes: RawSpan) {
        add(word: onesComplementSum(bytes))
    }

    /// Adds a 16-bit word given in host order.
    @inlinable
    public mutating func add(_ word: UInt16) {
        add(word: UInt64(word.bigEndian))
    }

    /// Adds the bytes of an address.
    @inlinable
    public mutating func add(_ address: IPAddress) {
        switch address {
        case .v4(let address):
            add(word: UInt64(address.bits.bigEndian))
        case .v6(let address):
            add(word: address.high.bigEndian)
            add(word: address.low.bigEndian)
        }
    }

    /// Adds eight bytes in memory order, with the carry brought round.
    @inlinable
    mutating func add(word: UInt64) {
        let (partial, overflow) = sum.addingReportingOverflow(word)
        sum = partial &+ (overflow ? 1 : 0)
    }

    /// The sum in 16 bits, in host order. Over bytes that include a right checksum it is 0xFFFF.
    @inlinable
    public var folded: UInt16 {
        var folded = (sum >> 32) &+ (sum & 0xFFFF_FFFF)
        folded = (folded >> 32) &+ (folded & 0xFFFF_FFFF)
        folded = (folded >> 16) &+ (folded & 0xFFFF)
        folded = (folded >> 16) &+ (folded & 0xFFFF)
        return UInt16(bigEndian: UInt16(truncatingIfNeeded: folded))
    }

    /// The checksum to put in a header whose checksum field was zero while it was summed: the complement of the sum.
    @inlinable
    public var checksum: UInt16 { ~folded }

    /// The checksum where zero means that there is none (UDP, RFC 768): 0xFFFF, its equal in one's complement, replaces zero.
    @inlinable
    public var nonzeroChecksum: UInt16 {
        let checksum = checksum
        return checksum == 0 ? 0xFFFF : checksum
    }

    /// The checksum after one 16-bit word under it changed (RFC 1624 §3, equation 3). All values are in host order.
    @inlinable
    public static func updating(_ checksum: UInt16, replacing old: UInt16, with new: UInt16) -> UInt16 {
        var sum = UInt32(~checksum) &+ UInt32(~old) &+ UInt32(new)
        sum = (sum >> 16) &+ (sum & 0xFFFF)
        sum = (sum >> 16) &+ (sum & 0xFFFF)
        return ~UInt16(truncatingIfNeeded: sum)
    }
}
