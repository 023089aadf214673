import ByteAccess

/// What marking a packet came to.
public enum CongestionMark: Hashable, Sendable {
    /// The packet has the new ECN bits now.
    case marked
    /// It had them already.
    case unchanged
    /// Its ends do not speak ECN; it was left as it was.
    case notECNCapable
    /// It is too short to be an IP packet; it was left as it was.
    case notIP
}

extension ExplicitCongestionNotification {
    /// The bits for the outer header of a tunnel, when these are the inner ones: the same, but ECT(0) for CE, so that congestion
    /// inside and outside the tunnel can be told apart (RFC 3168 §9.1.1).
    @inlinable
    public var encapsulated: Self { self == .ce ? .ect0 : self }

    /// Puts what the outer header learned into the packet that was inside (RFC 6040 §4.2): CE marks an ECN-capable packet, and
    /// ECT(1) turns ECT(0) into itself. A packet that is not ECN-capable is left alone, not dropped, even for CE.
    public static func decapsulate(outer: Self, in packet: inout MutableRawSpan) -> CongestionMark {
        switch outer {
        case .notECT, .ect0: .unchanged
        case .ect1: raise(to: .ect1, in: &packet)
        case .ce: raise(to: .ce, in: &packet)
        }
    }

    /// Sets CE in the header at the start of `packet`, if its ends speak ECN, and adjusts an IPv4 header's checksum.
    public static func markCongestionExperienced(in packet: inout MutableRawSpan) -> CongestionMark {
        raise(to: .ce, in: &packet)
    }

    private static func raise(to new: Self, in packet: inout MutableRawSpan) -> CongestionMark {
        let (isIPv4, old, oldChecksum): (Bool, UInt16, UInt16)
        do {
            let bytes = packet.bytes
            guard bytes.byteCount > 0 else { return .notIP }
            switch bytes.uint8(at: 0) >> 4 {
            case 4 where bytes.byteCount >= 20: isIPv4 = true
            case 6 where bytes.byteCount >= 40: isIPv4 = false
            default: return .notIP
            }
            old = bytes.bigEndianUInt16(at: 0)
            oldChecksum = bytes.bigEndianUInt16(at: 10)
        }
        // The traffic class is the low byte of the first 16 bits in IPv4, and four bits further up in IPv6.
        let shift: UInt16 = isIPv4 ? 0 : 4
        switch Self(trafficClass: UInt8(truncatingIfNeeded: old >> shift)) {
        case .notECT: return .notECNCapable
        case .ce: return .unchanged
        case .ect1 where new == .ect1: return .unchanged
        case .ect0, .ect1: break
        }
        let changed = old & ~(3 << shift) | UInt16(new.rawValue) << shift
        packet.storeBigEndian(changed, at: 0)
        if isIPv4 {
            packet.storeBigEndian(InternetChecksum.updating(oldChecksum, replacing: old, with: changed), at: 10)
        }
        return .marked
    }
}
