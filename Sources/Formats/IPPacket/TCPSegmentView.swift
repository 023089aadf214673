import ByteAccess

/// A TCP segment (RFC 9293 §3.1) whose header length has been checked: no accessor traps.
public struct TCPSegmentView: ~Escapable {
    /// The segment: header and payload.
    public let bytes: RawSpan
    /// The length of the header with its options in bytes: 20 to 60.
    public let headerLength: Int

    /// Checks the data offset. `bytes` is everything behind the IP headers. The checksum is not looked at.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount >= 20 else { throw .truncated }
        headerLength = Int(bytes.uint8(at: 12) >> 4) * 4
        guard headerLength >= 20 else { throw .invalidHeaderLength }
        guard headerLength <= bytes.byteCount else { throw .truncated }
        self.bytes = bytes
    }

    /// The port it comes from.
    public var sourcePort: UInt16 { bytes.bigEndianUInt16(at: 0) }

    /// The port it goes to.
    public var destinationPort: UInt16 { bytes.bigEndianUInt16(at: 2) }

    /// The sequence number of the first byte of the payload, or of the SYN.
    public var sequenceNumber: UInt32 { bytes.bigEndianUInt32(at: 4) }

    /// The next sequence number expected from the other end, when `flags` has `acknowledgment`.
    public var acknowledgmentNumber: UInt32 { bytes.bigEndianUInt32(at: 8) }

    /// The control bits.
    public var flags: TCPFlags { TCPFlags(rawValue: bytes.uint8(at: 13)) }

    /// The receive window, before scaling.
    public var window: UInt16 { bytes.bigEndianUInt16(at: 14) }

    /// The checksum as it is in the segment.
    public var checksum: UInt16 { bytes.bigEndianUInt16(at: 16) }

    /// The offset of urgent data, when `flags` has `urgent`.
    public var urgentPointer: UInt16 { bytes.bigEndianUInt16(at: 18) }

    /// The options, undecoded: 0 to 40 bytes.
    public var options: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(20..<headerLength) }
    }

    /// The payload.
    public var payload: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(headerLength...) }
    }

    /// The value of the maximum segment size option (RFC 9293 §3.2); nil when it is absent or the options before it are broken.
    public var maximumSegmentSize: UInt16? {
        let options = options
        var offset = 0
        while offset < options.byteCount {
            switch options.uint8(at: offset) {
            case 0: return nil
            case 1: offset += 1
            case let kind:
                guard options.byteCount - offset >= 2 else { return nil }
                let length = Int(options.uint8(at: offset + 1))
                guard length >= 2, length <= options.byteCount - offset else { return nil }
                if kind == 2 { return length == 4 ? options.bigEndianUInt16(at: offset + 2) : nil }
                offset += length
            }
        }
        return nil
    }
}

/// The control bits of a TCP header (RFC 9293 §3.1, RFC 3168 §6.1).
public struct TCPFlags: OptionSet, Hashable, Sendable, BitwiseCopyable {
    /// Byte 13 of the header.
    public let rawValue: UInt8

    /// The bits of byte 13 of a header.
    @inlinable
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// FIN: the sender has nothing more to send.
    @inlinable public static var finish: Self { Self(rawValue: 0x01) }
    /// SYN: the sequence number is the initial one.
    @inlinable public static var synchronize: Self { Self(rawValue: 0x02) }
    /// RST: there is no such connection, or no longer.
    @inlinable public static var reset: Self { Self(rawValue: 0x04) }
    /// PSH: pass the data on.
    @inlinable public static var push: Self { Self(rawValue: 0x08) }
    /// ACK: the acknowledgment number counts.
    @inlinable public static var acknowledgment: Self { Self(rawValue: 0x10) }
    /// URG: the urgent pointer counts.
    @inlinable public static var urgent: Self { Self(rawValue: 0x20) }
    /// ECE: congestion was experienced on the way here.
    @inlinable public static var echoCongestion: Self { Self(rawValue: 0x40) }
    /// CWR: the congestion window was reduced.
    @inlinable public static var congestionWindowReduced: Self { Self(rawValue: 0x80) }
}
