/// What tells one flow from another: both addresses, both ports and the protocol.
///
/// An ICMP echo request or reply has its identifier in both ports, so that the reply's tuple is the request's, reversed. Other
/// protocols, and other ICMP messages, have zero in both.
public struct FiveTuple: Hashable, Sendable, BitwiseCopyable {
    /// Where the packet comes from.
    public var source: IPAddress
    /// Where the packet goes.
    public var destination: IPAddress
    /// The port it comes from.
    public var sourcePort: UInt16
    /// The port it goes to.
    public var destinationPort: UInt16
    /// The upper-layer protocol: for IPv6 the one behind the extension headers.
    public var protocolNumber: IPProtocol

    /// A tuple of these parts.
    @inlinable
    public init(
        source: IPAddress, destination: IPAddress, sourcePort: UInt16, destinationPort: UInt16,
        protocolNumber: IPProtocol
    ) {
        self.source = source
        self.destination = destination
        self.sourcePort = sourcePort
        self.destinationPort = destinationPort
        self.protocolNumber = protocolNumber
    }

    /// The tuple of the packets that go the other way.
    @inlinable
    public var reversed: Self {
        Self(
            source: destination, destination: source, sourcePort: destinationPort, destinationPort: sourcePort,
            protocolNumber: protocolNumber)
    }
}
