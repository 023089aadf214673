/// Whose a prefix is and its neighbours in the list of that owner's prefixes. The trie looks at the owner alone.
struct ListMembership {
    /// The owner's number; all ones for none.
    var owner = UInt32.max
    /// Where the neighbours are, in the terms of whoever keeps the list.
    var previous = UInt32.max
    var next = UInt32.max
}

/// A set of address prefixes of one family, each with an owner, in a binary trie with compressed paths. Every node is
/// either a prefix in the set or the place where two branches part, so that there are fewer than twice as many nodes as
/// prefixes.
///
///     0.0.0.0/0 ── owner 1                 a prefix that contains all below it
///     └─ 10.0.0.0/8 ── no owner            only parts its two branches
///        ├─ 10.0.0.0/24 ── owner 2
///        └─ 10.200.0.0/16 ── owner 1
///
/// Nodes lie in one array and point to each other by their place in it, which a prefix keeps as long as it is in the
/// set. The places of removed nodes are used again.
struct PrefixTrie<Key: FixedWidthInteger & UnsignedInteger>: ~Copyable {
    /// A place in the array of nodes. None is the greatest, so that of two places of which one is none the lesser is
    /// the other.
    typealias Slot = UInt32

    /// What a missing child, a missing root and a missing owner look like.
    static var none: UInt32 { .max }

    /// A prefix and what hangs below it.
    struct Node {
        /// The first address of the prefix.
        var key: Key
        /// The child whose prefix continues with a zero bit and the one whose prefix continues with a one bit. In a
        /// free slot the first is the next free slot.
        var children: InlineArray<2, Slot> = [.max, .max]
        /// Whose it is; nobody's when the node only parts two branches.
        var membership = ListMembership()
        /// The length of the prefix in bits.
        var length: UInt8
    }

    private var nodes: [Node] = []
    private var root: Slot = none
    private var firstFree: Slot = none

    /// An empty set.
    init() {}

    /// The node in `slot`.
    subscript(slot: Slot) -> Node {
        get { nodes[Int(slot)] }
        _modify { yield &nodes[Int(slot)] }
    }

    /// Whether `slot` is one of those there are, in use or free.
    func contains(_ slot: Slot) -> Bool { Int(slot) < nodes.count }

    /// The owner of the longest prefix that contains `key`, or none.
    @inline(__always)
    func owner(of key: Key) -> UInt32 {
        var owner = Self.none
        var slot = root
        while slot != Self.none {
            let length = nodes[Int(slot)].length
            if (key ^ nodes[Int(slot)].key).leadingZeroBitCount < Int(length) { break }
            let candidate = nodes[Int(slot)].membership.owner
            if candidate != Self.none { owner = candidate }
            // At a full-length prefix this looks at some bit, but there both children are missing.
            slot = nodes[Int(slot)].children[Self.bit(of: key, after: length)]
        }
        return owner
    }

    /// The place of a prefix in the set.
    func slot(of key: Key, length: UInt8) -> Slot? {
        var slot = root
        while slot != Self.none {
            let node = nodes[Int(slot)]
            if node.length > length || (key ^ node.key).leadingZeroBitCount < Int(node.length) { return nil }
            if node.length == length { return node.membership.owner == Self.none ? nil : slot }
            slot = node.children[Self.bit(of: key, after: node.length)]
        }
        return nil
    }

    /// Finds or makes the node of a prefix, the bits of `key` after it being zero. A new node has no owner: the caller
    /// has to give it one.
    mutating func insert(_ key: Key, length: UInt8) -> Slot {
        var parent = Self.none
        var slot = root
        while slot != Self.none {
            let node = nodes[Int(slot)]
            let common = UInt8(min((key ^ node.key).leadingZeroBitCount, Int(min(node.length, length))))
            if common < node.length {
                let added = allocate(key, length: length)
                if common == length {
                    // The new prefix contains the node's and takes its place.
                    setChild(of: added, on: node.key, to: slot)
                    setChild(of: parent, on: key, to: added)
                } else {
                    let branch = allocate(Self.prefix(of: key, length: common), length: common)
                    setChild(of: branch, on: node.key, to: slot)
                    setChild(of: branch, on: key, to: added)
                    setChild(of: parent, on: key, to: branch)
                }
                return added
            }
            if node.length == length { return slot }
            parent = slot
            slot = node.children[Self.bit(of: key, after: node.length)]
        }
        let added = allocate(key, length: length)
        setChild(of: parent, on: key, to: added)
        return added
    }

    /// Takes a prefix that is in the set out of it.
    mutating func remove(_ key: Key, length: UInt8) {
        var (grandparent, parent, slot) = (Self.none, Self.none, root)
        while nodes[Int(slot)].length < length {
            (grandparent, parent) = (parent, slot)
            slot = nodes[Int(slot)].children[Self.bit(of: key, after: nodes[Int(slot)].length)]
        }
        let node = nodes[Int(slot)]
        nodes[Int(slot)].membership.owner = Self.none
        // With two children it still parts them.
        if node.children[0] != Self.none && node.children[1] != Self.none { return }
        let child = min(node.children[0], node.children[1])
        setChild(of: parent, on: key, to: child)
        free(slot)
        // A parent that only parted this node from another one has nothing to part any more.
        if child == Self.none && parent != Self.none && nodes[Int(parent)].membership.owner == Self.none {
            let children = nodes[Int(parent)].children
            setChild(of: grandparent, on: key, to: min(children[0], children[1]))
            free(parent)
        }
        if root == Self.none {
            nodes = []
            firstFree = Self.none
        }
    }

    /// Hangs `child` below `parent`, on the side that `key` continues on; without a parent it becomes the root.
    private mutating func setChild(of parent: Slot, on key: Key, to child: Slot) {
        if parent == Self.none {
            root = child
        } else {
            nodes[Int(parent)].children[Self.bit(of: key, after: nodes[Int(parent)].length)] = child
        }
    }

    private mutating func allocate(_ key: Key, length: UInt8) -> Slot {
        let node = Node(key: key, length: length)
        guard firstFree != Self.none else {
            nodes.append(node)
            return Slot(nodes.count - 1)
        }
        let slot = firstFree
        firstFree = nodes[Int(slot)].children[0]
        nodes[Int(slot)] = node
        return slot
    }

    private mutating func free(_ slot: Slot) {
        nodes[Int(slot)].membership.owner = Self.none
        nodes[Int(slot)].children[0] = firstFree
        firstFree = slot
    }

    /// Bit number `length` of `key`, counted from the most significant one.
    @inline(__always)
    private static func bit(of key: Key, after length: UInt8) -> Int {
        Int(truncatingIfNeeded: (key &<< Key(truncatingIfNeeded: length)) &>> Key(truncatingIfNeeded: Key.bitWidth - 1))
    }

    /// `key` with the bits after the first `length` (at most the width) cleared.
    static func prefix(of key: Key, length: UInt8) -> Key {
        length == 0 ? 0 : key & (Key.max &<< Key(truncatingIfNeeded: Key.bitWidth - Int(length)))
    }
}
