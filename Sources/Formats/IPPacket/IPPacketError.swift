/// Why bytes are not a packet.
public enum IPPacketError: Error, Hashable, Sendable {
    /// The bytes end before what the headers promise.
    case truncated
    /// The version is neither 4 nor 6, or not the one that the view is for.
    case unknownVersion
    /// A header's own length is less than its fixed part, or more than what holds it.
    case invalidHeaderLength
    /// The length of the packet or datagram is less than its header.
    case invalidTotalLength
    /// An IPv6 payload length of zero with a hop-by-hop header: a jumbogram (RFC 2675), which no TUN device carries.
    case jumbogram
    /// A hop-by-hop header that is not the first, or a second fragment header (RFC 8200 §4.1).
    case misplacedExtensionHeader
    /// More extension headers than ``IPv6PacketView/maximumExtensionHeaders``.
    case tooManyExtensionHeaders
}
