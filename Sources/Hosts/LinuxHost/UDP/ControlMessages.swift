internal import ByteAccess
internal import CLinux
internal import Glibc
internal import IPPacket
internal import WireGuard

/// The control messages beside a datagram: each a header (length as a machine word, level, type), then data, then
/// padding to a machine word.
enum ControlMessages {
    /// Room for everything that this project sends or receives beside a datagram, in bytes.
    static let capacity = 128
    /// The size of a header.
    private static let headerLength = MemoryLayout<cmsghdr>.size
    private static let alignment = MemoryLayout<Int>.size

    /// What the kernel says about a received datagram.
    struct Received: Equatable {
        /// The local end; nil when the kernel did not tell.
        var source: LocalSource?
        /// IPv4 TOS or IPv6 traffic class.
        var trafficClass: UInt8 = 0
        /// The length of each datagram in a train that UDP_GRO joined, the last one perhaps excepted; 0 without a
        /// train.
        var segmentSize = 0
    }

    /// Reads the control messages that fill `bytes`. Unknown ones are skipped; a length that runs out of bounds ends
    /// the list.
    @inline(__always)
    static func read(_ bytes: RawSpan) -> Received {
        var received = Received()
        var offset = 0
        while bytes.byteCount - offset >= headerLength {
            // In bounds by the condition above; every bit pattern is a valid integer.
            let (length, level, type) = unsafe (
                bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Int.self),
                bytes.unsafeLoadUnaligned(fromByteOffset: offset + alignment, as: Int32.self),
                bytes.unsafeLoadUnaligned(fromByteOffset: offset + alignment + 4, as: Int32.self)
            )
            guard length >= headerLength, length <= bytes.byteCount - offset else { break }
            let data = bytes.extracting(offset + headerLength..<offset + length)
            switch (level, type) {
            case (Int32(IPPROTO_IP), IP_PKTINFO) where data.byteCount >= 12:
                // in_pktinfo: interface index, local address (the one to answer from), the header's destination.
                received.source = LocalSource(
                    address: .v4(IPv4Address(bits: data.bigEndianUInt32(at: 4))),
                    interfaceIndex: hostInteger(data, at: 0))
            case (Int32(IPPROTO_IPV6), IPV6_PKTINFO) where data.byteCount >= 20:
                // in6_pktinfo: the header's destination, interface index.
                received.source = LocalSource(
                    address: .v6(IPv6Address(high: data.bigEndianUInt64(at: 0), low: data.bigEndianUInt64(at: 8))),
                    interfaceIndex: hostInteger(data, at: 16))
            case (Int32(IPPROTO_IP), IP_TOS) where data.byteCount >= 1:
                received.trafficClass = data.uint8(at: 0)
            case (Int32(IPPROTO_IPV6), IPV6_TCLASS) where data.byteCount >= 4:
                received.trafficClass = UInt8(truncatingIfNeeded: hostInteger(data, at: 0))
            case (Int32(IPPROTO_UDP), UDP_GRO) where data.byteCount >= 4:
                received.segmentSize = Int(hostInteger(data, at: 0))
            case (Int32(IPPROTO_UDP), UDP_GRO) where data.byteCount >= 2:
                // Some kernels tell it in two bytes.
                received.segmentSize = Int(unsafe data.unsafeLoadUnaligned(as: UInt16.self))
            default: break
            }
            offset += aligned(length)
        }
        return received
    }

    /// Writes the control messages of an outgoing datagram to the start of `bytes`, which has at least `capacity`
    /// bytes, and returns their length: the source, when there is one of the destination's family, and a traffic class
    /// other than zero. The interface is named only for a link-local source, which means nothing without it; any other
    /// source leaves the choice to the routes.
    @inline(__always)
    static func write(_ transmission: Transmission, withSource: Bool, to bytes: inout MutableRawSpan) -> Int {
        var offset = 0
        let path = transmission.path
        switch path.remote.address {
        case .v4:
            if withSource, let source = path.source, case .v4(let address) = source.address {
                let data = writeHeader(level: IPPROTO_IP, type: IP_PKTINFO, dataLength: 12, at: &offset, to: &bytes)
                bytes.zero(from: data, count: 12)
                bytes.storeBigEndian(address.bits, at: data + 4)
            }
            if transmission.trafficClass != 0 {
                let data = writeHeader(level: IPPROTO_IP, type: IP_TOS, dataLength: 4, at: &offset, to: &bytes)
                bytes.storeBytes(of: Int32(transmission.trafficClass), toByteOffset: data, as: Int32.self)
            }
        case .v6:
            if withSource, let source = path.source, case .v6(let address) = source.address {
                let data = writeHeader(level: IPPROTO_IPV6, type: IPV6_PKTINFO, dataLength: 20, at: &offset, to: &bytes)
                bytes.storeBigEndian(address.high, at: data)
                bytes.storeBigEndian(address.low, at: data + 8)
                let interface = address.isLinkLocal ? source.interfaceIndex : 0
                bytes.storeBytes(of: interface, toByteOffset: data + 16, as: UInt32.self)
            }
            if transmission.trafficClass != 0 {
                let data = writeHeader(level: IPPROTO_IPV6, type: IPV6_TCLASS, dataLength: 4, at: &offset, to: &bytes)
                bytes.storeBytes(of: Int32(transmission.trafficClass), toByteOffset: data, as: Int32.self)
            }
        }
        return offset
    }

    /// Writes how long each datagram of a message is, at `offset` behind other control messages, and returns the length of
    /// all of them.
    @inline(__always)
    static func writeSegmentSize(_ size: UInt16, at offset: Int, to bytes: inout MutableRawSpan) -> Int {
        var offset = offset
        let data = writeHeader(level: IPPROTO_UDP, type: UDP_SEGMENT, dataLength: 2, at: &offset, to: &bytes)
        bytes.storeBytes(of: size, toByteOffset: data, as: UInt16.self)
        return offset
    }

    /// Writes a header at `offset`, moves `offset` behind the message and returns where its data goes.
    @inline(__always)
    private static func writeHeader(
        level: Int, type: Int32, dataLength: Int, at offset: inout Int, to bytes: inout MutableRawSpan
    ) -> Int {
        let start = offset
        offset += aligned(headerLength + dataLength)
        // The padding is read by nobody but sent to the kernel: no stale bytes in it.
        bytes.zero(from: start, count: offset - start)
        bytes.storeBytes(of: headerLength + dataLength, toByteOffset: start, as: Int.self)
        bytes.storeBytes(of: Int32(level), toByteOffset: start + alignment, as: Int32.self)
        bytes.storeBytes(of: type, toByteOffset: start + alignment + 4, as: Int32.self)
        return start + headerLength
    }

    @inline(__always)
    private static func aligned(_ length: Int) -> Int { (length + alignment - 1) & ~(alignment - 1) }

    @inline(__always)
    private static func hostInteger(_ bytes: RawSpan, at offset: Int) -> UInt32 {
        // Bounds are checked by the callee; every bit pattern is a valid integer.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)
    }
}
