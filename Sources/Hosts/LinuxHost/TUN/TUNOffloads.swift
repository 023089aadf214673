internal import CLinux

/// What the kernel agreed to leave unfinished in the packets that a TUN device hands over. Each packet's virtio header says
/// what is left to do with it.
struct TUNOffloads: Equatable, Codable, Sendable {
    /// Packets may lack their transport checksum.
    var checksum = false
    /// TCP comes as super-packets.
    var tcp = false
    /// UDP comes as super-packets, when a program sends it so.
    var udp = false

    /// Every packet comes finished.
    static let none = TUNOffloads()
    /// Everything that is useful here, from Linux 6.2 on. `TUN_F_TSO_ECN` is not among it: the kernel then cuts those
    /// super-packets itself whose first segment alone must carry CWR.
    static let all = TUNOffloads(checksum: true, tcp: true, udp: true)
    /// What is tried, best first, when something is refused.
    static let attempts = [all, TUNOffloads(checksum: true, tcp: true), none]

    /// The bits of `TUNSETOFFLOAD`. Segmentation without checksums does not exist.
    var bits: UInt32 {
        var bits: Int32 = 0
        if checksum {
            bits |= TUN_F_CSUM
            if tcp { bits |= TUN_F_TSO4 | TUN_F_TSO6 }
            if udp { bits |= TUN_F_USO4 | TUN_F_USO6 }
        }
        return UInt32(bits)
    }
}
