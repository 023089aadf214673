public import IPPacket

/// Which peer an address belongs to.
public struct AllowedIPs: ~Copyable {
    /// One prefix of a peer.
    public struct Entry: Hashable, Sendable {
        /// The first address of the prefix.
        public var address: IPAddress
        /// The length of the prefix in bits.
        public var prefixLength: UInt8
        let position: UInt32
    }

    /// An empty table.
    public init() {}

    /// Gives a prefix to `peer`.
    public mutating func insert(_ address: IPAddress, prefixLength: UInt8, for peer: PeerIndex) {}

    /// Takes a prefix from `peer`; nothing happens when it is not the owner.
    public mutating func remove(_ address: IPAddress, prefixLength: UInt8, ifOwnedBy peer: PeerIndex) {}

    /// Takes all prefixes from `peer`.
    public mutating func removeAll(of peer: PeerIndex) {}

    /// The owner of the longest prefix that contains `address`.
    public func peer(for address: IPv4Address) -> PeerIndex? { nil }

    /// The owner of the longest prefix that contains `address`.
    public func peer(for address: IPv6Address) -> PeerIndex? { nil }

    /// The owner of the longest prefix that contains `address`.
    public func peer(for address: IPAddress) -> PeerIndex? { nil }

    /// The prefix that `peer` was given first.
    public func firstEntry(of peer: PeerIndex) -> Entry? { nil }

    /// The prefix that the owner of `entry` was given next.
    public func entry(after entry: Entry) -> Entry? { nil }
}
