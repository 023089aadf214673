import ByteAccess

/// A whole IPv6 packet or fragment (RFC 8200) whose lengths and extension headers have been checked: no accessor traps.
public struct IPv6PacketView: ~Escapable {
    /// How many extension headers a packet may have. RFC 8200 §4.1 needs seven at most when each appears as often as it may.
    public static var maximumExtensionHeaders: Int { 8 }

    /// The packet, without what was behind it.
    public let bytes: RawSpan
    /// The fields of the fixed header. Its `protocolNumber` is the first next header.
    public let header: IPHeader
    /// What is behind the extension headers. In a fragment other than the first it is what the fragment header names, which
    /// may be an extension header; 59 when nothing follows; 50 when what follows is encrypted.
    public let upperLayerProtocol: IPProtocol
    /// Where it is: 40 and more; at most the packet's length.
    public let upperLayerOffset: Int
    /// Where the packet belongs in its datagram.
    public let fragment: FragmentPosition
    /// The identification that all fragments of a datagram share; nil without a fragment header.
    public let fragmentIdentification: UInt32?
    /// True when a routing header still names places to visit: then `header.destination` is not the last one, and a transport
    /// checksum is over another (RFC 8200 §8.1).
    public let hasSegmentsLeft: Bool

    /// Checks version and length, and walks the hop-by-hop, routing, fragment, authentication and destination options headers.
    /// They must end within the packet, which a first fragment must manage too (RFC 7112).
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(IPPacketError) {
        guard bytes.byteCount > 0 else { throw .truncated }
        guard bytes.uint8(at: 0) >> 4 == 6 else { throw .unknownVersion }
        let header = try IPHeader(parsingIPv6: bytes)
        let packet = bytes.extracting(..<header.totalLength)

        var next = header.protocolNumber
        var offset = 40
        var fragment = FragmentPosition.whole
        var identification: UInt32?
        var hasSegmentsLeft = false
        var count = 0
        while next.isExtensionHeader && fragment.holdsTransportHeader {
            guard count < Self.maximumExtensionHeaders else { throw .tooManyExtensionHeaders }
            guard packet.byteCount - offset >= 8 else { throw .truncated }
            let length =
                switch next {
                case .fragment: 8
                case .authenticationHeader: (Int(packet.uint8(at: offset + 1)) + 2) * 4
                default: (Int(packet.uint8(at: offset + 1)) + 1) * 8
                }
            // An authentication header has twelve bytes before its check value, and ends on a multiple of eight.
            if next == .authenticationHeader {
                guard length >= 12 else { throw .invalidHeaderLength }
            }
            guard length <= packet.byteCount - offset else { throw .truncated }
            switch next {
            case .hopByHopOptions:
                guard count == 0 else { throw .misplacedExtensionHeader }
            case .routing:
                if packet.uint8(at: offset + 3) != 0 { hasSegmentsLeft = true }
            case .fragment:
                guard identification == nil else { throw .misplacedExtensionHeader }
                fragment = FragmentPosition(ipv6: packet.bigEndianUInt16(at: offset + 2))
                identification = packet.bigEndianUInt32(at: offset + 4)
            default: break
            }
            next = IPProtocol(rawValue: packet.uint8(at: offset))
            offset += length
            count += 1
        }

        self.bytes = packet
        self.header = header
        self.upperLayerProtocol = next
        self.upperLayerOffset = offset
        self.fragment = fragment
        self.fragmentIdentification = identification
        self.hasSegmentsLeft = hasSegmentsLeft
    }

    /// The flow label: 20 bits (RFC 6437).
    public var flowLabel: UInt32 { bytes.bigEndianUInt32(at: 0) & 0xF_FFFF }

    /// The extension headers, undecoded.
    public var extensionHeaders: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(40..<upperLayerOffset) }
    }

    /// What is behind the extension headers: a transport header and its payload, or a part of them.
    public var payload: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(upperLayerOffset...) }
    }
}

extension IPProtocol {
    /// True for the extension headers that have the usual form and can be stepped over.
    fileprivate var isExtensionHeader: Bool {
        switch self {
        case .hopByHopOptions, .routing, .fragment, .authenticationHeader, .destinationOptions: true
        default: false
        }
    }
}
