public import IPPacket

/// Which addresses belong to which peer: the peer that a packet is sent to by its destination, and the one it must have
/// come from by its source. The longest prefix that contains an address decides, whoever else has a shorter one.
///
/// Every prefix has one owner. The prefixes of a peer are listed in the order in which it was given them:
///
///     var entry = allowedIPs.firstEntry(of: peer)
///     while let current = entry {
///         print(current.address, current.prefixLength)
///         entry = allowedIPs.entry(after: current)
///     }
///
/// A look-up visits at most as many nodes as an address has bits. It allocates nothing; neither does listing. Peers are
/// expected to be numbered from zero upwards, since their lists are found by number.
public struct AllowedIPs: ~Copyable {
    /// One prefix of a peer. It stays good until the prefix is removed or moved to another peer.
    public struct Entry: Hashable, Sendable {
        /// The first address of the prefix.
        public let address: IPAddress
        /// The length of the prefix in bits: at most 32 for IPv4 and 128 for IPv6.
        public let prefixLength: UInt8

        fileprivate let position: Position
    }

    /// The first and the last prefix of a peer.
    private struct List {
        var first = Position.none
        var last = Position.none
    }

    private var ipv4 = PrefixTrie<UInt32>()
    private var ipv6 = PrefixTrie<UInt128>()
    /// By the number of the peer.
    private var lists: [List] = []

    /// A table without prefixes.
    public init() {}

    /// Gives a prefix to `peer`, taking it from the peer that had it. A peer that has it already keeps it where it is
    /// in its list.
    ///
    /// - Parameters:
    ///   - address: any address in the prefix: the bits after it count as zero.
    ///   - prefixLength: at most 32 for IPv4 and 128 for IPv6, which the caller has checked.
    public mutating func insert(_ address: IPAddress, prefixLength: UInt8, for peer: PeerIndex) {
        precondition(peer.rawValue < UInt32.max, "the greatest number stands for no peer")
        let position: Position
        switch address {
        case .v4(let address):
            precondition(prefixLength <= 32, "an IPv4 prefix longer than an address")
            let key = PrefixTrie<UInt32>.prefix(of: address.bits, length: prefixLength)
            position = Position(ipv4: ipv4.insert(key, length: prefixLength))
        case .v6(let address):
            precondition(prefixLength <= 128, "an IPv6 prefix longer than an address")
            let key = PrefixTrie<UInt128>.prefix(of: address.key, length: prefixLength)
            position = Position(ipv6: ipv6.insert(key, length: prefixLength))
        }
        if self[position].owner == peer.rawValue { return }
        unlink(position)
        append(position, to: peer.rawValue)
    }

    /// Takes a prefix from `peer`. Nothing happens when it has no such prefix, even if another peer has.
    ///
    /// - Parameters:
    ///   - address: any address in the prefix: the bits after it count as zero.
    ///   - prefixLength: at most 32 for IPv4 and 128 for IPv6, which the caller has checked.
    public mutating func remove(_ address: IPAddress, prefixLength: UInt8, ifOwnedBy peer: PeerIndex) {
        switch address {
        case .v4(let address):
            precondition(prefixLength <= 32, "an IPv4 prefix longer than an address")
            let key = PrefixTrie<UInt32>.prefix(of: address.bits, length: prefixLength)
            guard let slot = ipv4.slot(of: key, length: prefixLength), ipv4[slot].membership.owner == peer.rawValue
            else { return }
            unlink(Position(ipv4: slot))
            ipv4.remove(key, length: prefixLength)
        case .v6(let address):
            precondition(prefixLength <= 128, "an IPv6 prefix longer than an address")
            let key = PrefixTrie<UInt128>.prefix(of: address.key, length: prefixLength)
            guard let slot = ipv6.slot(of: key, length: prefixLength), ipv6[slot].membership.owner == peer.rawValue
            else { return }
            unlink(Position(ipv6: slot))
            ipv6.remove(key, length: prefixLength)
        }
    }

    /// Takes all prefixes from `peer`.
    public mutating func removeAll(of peer: PeerIndex) {
        guard Int(peer.rawValue) < lists.count else { return }
        var position = lists[Int(peer.rawValue)].first
        while position != .none {
            let following = Position(rawValue: self[position].next)
            if position.isIPv6 {
                let node = ipv6[position.slot]
                ipv6.remove(node.key, length: node.length)
            } else {
                let node = ipv4[position.slot]
                ipv4.remove(node.key, length: node.length)
            }
            position = following
        }
        lists[Int(peer.rawValue)] = List()
    }

    /// The owner of the longest prefix that contains `address`.
    public func peer(for address: IPv4Address) -> PeerIndex? {
        let owner = ipv4.owner(of: address.bits)
        return owner == UInt32.max ? nil : PeerIndex(rawValue: owner)
    }

    /// The owner of the longest prefix that contains `address`.
    public func peer(for address: IPv6Address) -> PeerIndex? {
        let owner = ipv6.owner(of: address.key)
        return owner == UInt32.max ? nil : PeerIndex(rawValue: owner)
    }

    /// The owner of the longest prefix that contains `address`.
    public func peer(for address: IPAddress) -> PeerIndex? {
        switch address {
        case .v4(let address): peer(for: address)
        case .v6(let address): peer(for: address)
        }
    }

    /// The prefix that `peer` has had longest.
    public func firstEntry(of peer: PeerIndex) -> Entry? {
        Int(peer.rawValue) < lists.count ? entry(at: lists[Int(peer.rawValue)].first) : nil
    }

    /// The prefix that the owner of `entry` was given next.
    public func entry(after entry: Entry) -> Entry? {
        let position = entry.position
        // An entry kept across a change may name a place that is gone, or free, or another prefix's.
        guard position.isIPv6 ? ipv6.contains(position.slot) : ipv4.contains(position.slot) else { return nil }
        guard self[position].owner != UInt32.max, self.entry(at: position) == entry else { return nil }
        return self.entry(at: Position(rawValue: self[position].next))
    }

    private func entry(at position: Position) -> Entry? {
        if position == .none { return nil }
        if position.isIPv6 {
            let node = ipv6[position.slot]
            return Entry(address: .v6(IPv6Address(key: node.key)), prefixLength: node.length, position: position)
        }
        let node = ipv4[position.slot]
        return Entry(address: .v4(IPv4Address(bits: node.key)), prefixLength: node.length, position: position)
    }

    /// Whose the prefix in a place is.
    private subscript(position: Position) -> ListMembership {
        get { position.isIPv6 ? ipv6[position.slot].membership : ipv4[position.slot].membership }
        _modify {
            if position.isIPv6 {
                yield &ipv6[position.slot].membership
            } else {
                yield &ipv4[position.slot].membership
            }
        }
    }

    /// Makes `peer` the owner of a prefix that has none, and the prefix the last one of its list.
    private mutating func append(_ position: Position, to peer: UInt32) {
        while lists.count <= Int(peer) { lists.append(List()) }
        let last = lists[Int(peer)].last
        self[position] = ListMembership(owner: peer, previous: last.rawValue, next: Position.none.rawValue)
        if last == .none { lists[Int(peer)].first = position } else { self[last].next = position.rawValue }
        lists[Int(peer)].last = position
    }

    /// Takes a prefix out of the list of its owner, if it has one.
    private mutating func unlink(_ position: Position) {
        let membership = self[position]
        guard membership.owner != UInt32.max else { return }
        let (before, after) = (Position(rawValue: membership.previous), Position(rawValue: membership.next))
        if before == .none {
            lists[Int(membership.owner)].first = after
        } else {
            self[before].next = after.rawValue
        }
        if after == .none {
            lists[Int(membership.owner)].last = before
        } else {
            self[after].previous = before.rawValue
        }
    }
}

/// Where a prefix lies: a trie and a slot of it, so that one list can go through both.
private struct Position: Hashable, Sendable {
    /// The slot, and above it a bit that is set for IPv6; all ones for none.
    let rawValue: UInt32

    static let none = Position(rawValue: .max)
    private static let familyBit: UInt32 = 1 << 31

    init(rawValue: UInt32) { self.rawValue = rawValue }
    init(ipv4 slot: UInt32) { rawValue = slot }
    init(ipv6 slot: UInt32) { rawValue = slot | Self.familyBit }

    var isIPv6: Bool { rawValue & Self.familyBit != 0 }
    var slot: UInt32 { rawValue & ~Self.familyBit }
}

extension IPv6Address {
    /// The address as one integer in host order.
    fileprivate var key: UInt128 { UInt128(high) << 64 | UInt128(low) }

    fileprivate init(key: UInt128) {
        self.init(high: UInt64(truncatingIfNeeded: key >> 64), low: UInt64(truncatingIfNeeded: key))
    }
}
