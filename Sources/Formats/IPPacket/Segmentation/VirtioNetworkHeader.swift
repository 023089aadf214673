public import ByteAccess

/// The ten bytes that a TUN device opened with IFF_VNET_HDR puts before each packet that it delivers, and expects before each
/// that it is given (virtio 1.2 §5.1.6, the form without `num_buffers`).
///
/// Integers are little-endian, as TUN has them on a little-endian machine, or on any after TUNSETVNETLE.
public struct VirtioNetworkHeader: Hashable, Sendable, BitwiseCopyable {
    /// The length of the header in bytes.
    @inlinable public static var byteCount: Int { 10 }

    /// What the header says about the packet's transport checksum.
    public struct Flags: OptionSet, Hashable, Sendable, BitwiseCopyable {
        /// Byte 0 of the header.
        public let rawValue: UInt8

        /// The bits of byte 0 of a header.
        @inlinable
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// NEEDS_CSUM: the checksum field holds the sum of the pseudo-header only; `checksumStart` and `checksumOffset` count.
        @inlinable public static var needsChecksum: Self { Self(rawValue: 1) }
        /// DATA_VALID: the checksum was verified.
        @inlinable public static var dataValid: Self { Self(rawValue: 2) }
    }

    /// How the packet has to be split before it can be sent.
    public enum Segmentation: UInt8, Hashable, Sendable, BitwiseCopyable {
        /// It is one packet.
        case none = 0
        /// GSO_TCPV4: TCP over IPv4.
        case tcpV4 = 1
        /// GSO_TCPV6: TCP over IPv6.
        case tcpV6 = 4
        /// GSO_UDP_L4: UDP over either version; each segment becomes a datagram.
        case udp = 5
    }

    /// What is known of the checksum.
    public var flags: Flags
    /// How to split the packet.
    public var segmentation: Segmentation
    /// GSO_ECN: the first segment may have CWR set.
    public var hasECN: Bool
    /// The length in bytes of all headers of the packet. The kernel gives it as a hint: do not trust it.
    public var headerLength: UInt16
    /// How many bytes of payload each segment has but the last.
    public var segmentSize: UInt16
    /// Where the bytes under the checksum start, counted from the start of the packet.
    public var checksumStart: UInt16
    /// Where the checksum is, counted from `checksumStart`.
    public var checksumOffset: UInt16

    /// The header of a packet on its own; all its bytes but the first are zero.
    @inlinable
    public init(flags: Flags = []) {
        self.flags = flags
        segmentation = .none
        hasECN = false
        headerLength = 0
        segmentSize = 0
        checksumStart = 0
        checksumOffset = 0
    }

    /// Reads the header at the start of `bytes`. Throws ``SegmentationError/truncatedHeader`` or
    /// ``SegmentationError/unsupportedSegmentation``. Unknown flags are kept, as the standard has it.
    @inlinable
    public init(parsing bytes: RawSpan) throws(SegmentationError) {
        guard bytes.byteCount >= Self.byteCount else { throw .truncatedHeader }
        flags = Flags(rawValue: bytes.uint8(at: 0))
        let type = bytes.uint8(at: 1)
        hasECN = type & 0x80 != 0
        guard let segmentation = Segmentation(rawValue: type & 0x7F) else { throw .unsupportedSegmentation }
        self.segmentation = segmentation
        headerLength = bytes.littleEndianUInt16(at: 2)
        segmentSize = bytes.littleEndianUInt16(at: 4)
        checksumStart = bytes.littleEndianUInt16(at: 6)
        checksumOffset = bytes.littleEndianUInt16(at: 8)
    }

    /// Writes the ten bytes of the header at `offset`. Traps when they do not fit.
    @inlinable
    public func store(into bytes: inout MutableRawSpan, at offset: Int = 0) {
        bytes.store(flags.rawValue, at: offset)
        bytes.store(segmentation.rawValue | (hasECN ? 0x80 : 0), at: offset + 1)
        bytes.storeLittleEndian(headerLength, at: offset + 2)
        bytes.storeLittleEndian(segmentSize, at: offset + 4)
        bytes.storeLittleEndian(checksumStart, at: offset + 6)
        bytes.storeLittleEndian(checksumOffset, at: offset + 8)
    }
}
