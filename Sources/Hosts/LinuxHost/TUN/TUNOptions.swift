/// How a TUN device is opened, beyond its name and MTU.
struct TUNOptions: Equatable, Codable, Sendable {
    /// Packets get a virtio header and come as super-packets where the kernel can. What it agreed to is in the reply.
    var wantsOffloads = false
    /// How many packets wait for the device to be read before more are dropped; nil for the kernel's 500.
    var transmitQueueLength: Int?
    /// How many descriptors to open, each with a queue of its own. The kernel chooses the queue by flow.
    var queues = 1

    /// The most queues that make sense here; the kernel allows 256.
    static let maximumQueues = 64

    /// Whole packets, one a call, in one queue.
    static let plain = TUNOptions()
    /// Super-packets in one queue.
    static let superPackets = TUNOptions(wantsOffloads: true)

    /// The most bytes and segments that one super-packet may have, set as the link's gso_max_size and gso_max_segs: sealed,
    /// it still fits one message of `UDP_SEGMENT` almost always. TCP at an MTU of 1,420 bytes has 43 segments then, which are
    /// 62,436 bytes when they are sealed. The kernel itself cuts what a program sends beyond the limits, packet by packet, which
    /// is slow; so the number of segments is no lower than what one message can have.
    static let superPacketSizeLimit = 60_000
    static let superPacketSegmentLimit = 64
}
