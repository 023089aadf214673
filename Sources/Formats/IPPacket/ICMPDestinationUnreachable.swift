import ByteAccess

/// Builds the ICMP errors that say why a packet went nowhere.
public enum ICMPDestinationUnreachable {
    /// Why the packet went nowhere.
    public enum Reason: Hashable, Sendable {
        /// There is no route: ICMP type 3 code 0, ICMPv6 type 1 code 0.
        case noRoute
        /// The host or address cannot be reached: ICMP type 3 code 1, ICMPv6 type 1 code 3.
        case host
        /// Nothing listens on the port: ICMP type 3 code 3, ICMPv6 type 1 code 4.
        case port
        /// Policy forbids it: ICMP type 3 code 13 (RFC 1812), ICMPv6 type 1 code 1.
        case administrativelyProhibited
        /// It is longer than the next link's `mtu` in bytes: ICMP type 3 code 4 (RFC 1191), ICMPv6 type 2 code 0. Not for IPv4
        /// packets that may be fragmented.
        case packetTooBig(mtu: UInt32)
    }

    /// The longest packet that ``write(for:reason:into:)`` makes, in bytes: IPv6's minimum MTU (RFC 4443 §2.4 (c)).
    public static var maximumLength: Int { 1280 }

    /// Writes the whole ICMP packet about `packet`, which begins with its IP header, and returns its length in bytes: at most 576
    /// for IPv4 (RFC 1812 §4.3.2.3) and 1,280 for IPv6, and as much of `packet` quoted as that or `output` allows.
    ///
    /// It goes to the source of `packet` and comes from its destination: a tunnel device has no better address, and the
    /// kernel would drop one of its own that comes in from outside. Sending it at a limited rate is up to the caller.
    ///
    /// Returns nil, with `output` unchanged, when nothing may be sent (RFC 1122 §3.2.2, RFC 1812 §4.3.2.7, RFC 4443 §2.4 (e)): about
    /// what is not a well-formed IP packet, an ICMP error, an ICMP type that is not known to be a query, an ICMPv6 redirect, or a
    /// fragment other than the first; to or from a multicast, broadcast, unspecified, loopback or reserved address; and when
    /// `output` has no room for the headers and eight bytes behind the quoted one.
    public static func write(for packet: RawSpan, reason: Reason, into output: inout MutableRawSpan) -> Int? {
        guard packet.byteCount > 0 else { return nil }
        switch packet.uint8(at: 0) >> 4 {
        case 4: return writeIPv4(for: packet, reason: reason, into: &output)
        case 6: return writeIPv6(for: packet, reason: reason, into: &output)
        default: return nil
        }
    }

    private static func writeIPv4(for packet: RawSpan, reason: Reason, into output: inout MutableRawSpan) -> Int? {
        guard
            let view = try? IPv4PacketView(checking: packet), view.fragment.holdsTransportHeader,
            case .v4(let source) = view.header.source, source.canTakePartInErrors,
            case .v4(let destination) = view.header.destination, destination.canTakePartInErrors
        else { return nil }
        if view.header.protocolNumber == .icmpv4 {
            guard view.payload.byteCount > 0, view.payload.uint8(at: 0).isICMPv4Query else { return nil }
        }
        if case .packetTooBig = reason, !view.dontFragment { return nil }

        let room = min(output.byteCount, 576) - 28
        guard room >= min(view.bytes.byteCount, view.header.headerLength + 8) else { return nil }
        let quote = view.bytes.extracting(first: room)
        let length = 28 + quote.byteCount

        // Version 4, 20 bytes, internetwork control (RFC 1812 §4.3.2.5).
        output.storeBigEndian(0x45C0 as UInt16, at: 0)
        output.storeBigEndian(UInt16(truncatingIfNeeded: length), at: 2)
        // Never fragmented, so that it needs no identification (RFC 6864).
        output.storeBigEndian(0x0000_4000 as UInt32, at: 4)
        output.store(UInt8(64), at: 8)
        output.store(IPProtocol.icmpv4.rawValue, at: 9)
        output.storeBigEndian(0 as UInt16, at: 10)
        output.store(destination, at: 12)
        output.store(source, at: 16)
        var headerSum = InternetChecksum()
        headerSum.add(output.bytes.extracting(..<20))
        output.storeBigEndian(headerSum.checksum, at: 10)

        let (code, mtu) = reason.icmpv4
        output.store(3 as UInt8, at: 20)
        output.store(code, at: 21)
        output.storeBigEndian(0 as UInt16, at: 22)
        output.storeBigEndian(UInt32(mtu), at: 24)
        output.copy(quote, to: 28)
        var messageSum = InternetChecksum()
        messageSum.add(output.bytes.extracting(20..<length))
        output.storeBigEndian(messageSum.checksum, at: 22)
        return length
    }

    private static func writeIPv6(for packet: RawSpan, reason: Reason, into output: inout MutableRawSpan) -> Int? {
        guard
            let view = try? IPv6PacketView(checking: packet), view.fragment.holdsTransportHeader,
            case .v6(let source) = view.header.source, source.canTakePartInErrors,
            case .v6(let destination) = view.header.destination, destination.canTakePartInErrors
        else { return nil }
        if view.upperLayerProtocol == .icmpv6 {
            // Types below 128 are errors; 137 is the redirect.
            guard view.payload.byteCount > 0, case let type = view.payload.uint8(at: 0), type >= 128, type != 137 else {
                return nil
            }
        }

        let room = min(output.byteCount, 1280) - 48
        guard room >= min(view.bytes.byteCount, 48) else { return nil }
        let quote = view.bytes.extracting(first: room)
        let messageLength = 8 + quote.byteCount

        output.storeBigEndian(0x6000_0000 as UInt32, at: 0)
        output.storeBigEndian(UInt16(truncatingIfNeeded: messageLength), at: 4)
        output.store(IPProtocol.icmpv6.rawValue, at: 6)
        output.store(UInt8(64), at: 7)
        output.store(destination, at: 8)
        output.store(source, at: 24)

        let (type, code, mtu) = reason.icmpv6
        output.store(type, at: 40)
        output.store(code, at: 41)
        output.storeBigEndian(0 as UInt16, at: 42)
        output.storeBigEndian(mtu, at: 44)
        output.copy(quote, to: 48)
        var sum = InternetChecksum(
            pseudoHeaderSource: .v6(destination), destination: .v6(source), protocol: .icmpv6, length: messageLength)
        sum.add(output.bytes.extracting(40..<40 + messageLength))
        output.storeBigEndian(sum.checksum, at: 42)
        return 40 + messageLength
    }
}

extension ICMPDestinationUnreachable.Reason {
    /// The code of a type 3 message, and the next hop's MTU.
    fileprivate var icmpv4: (code: UInt8, mtu: UInt16) {
        switch self {
        case .noRoute: (0, 0)
        case .host: (1, 0)
        case .port: (3, 0)
        case .administrativelyProhibited: (13, 0)
        case .packetTooBig(let mtu): (4, UInt16(clamping: mtu))
        }
    }

    /// The type and code, and the MTU where there is one.
    fileprivate var icmpv6: (type: UInt8, code: UInt8, mtu: UInt32) {
        switch self {
        case .noRoute: (1, 0, 0)
        case .host: (1, 3, 0)
        case .port: (1, 4, 0)
        case .administrativelyProhibited: (1, 1, 0)
        case .packetTooBig(let mtu): (2, 0, mtu)
        }
    }
}

extension IPv4Address {
    /// True when the address names one other host: neither 0.0.0.0/8, 127.0.0.0/8, nor 224.0.0.0 and above.
    fileprivate var canTakePartInErrors: Bool { bits >> 24 != 0 && !isLoopback && bits >> 29 != 7 }
}

extension IPv6Address {
    /// True when the address can name one other host: neither `::`, `::1`, nor multicast.
    fileprivate var canTakePartInErrors: Bool { !isUnspecified && !isLoopback && !isMulticast }
}

extension UInt8 {
    /// True for the ICMP types that ask or answer: echo, router discovery, timestamp, information and address mask.
    fileprivate var isICMPv4Query: Bool {
        switch self {
        case 0, 8...10, 13...18: true
        default: false
        }
    }
}
