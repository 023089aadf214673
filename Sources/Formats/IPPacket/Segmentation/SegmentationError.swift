/// Why a packet and its virtio header cannot be split into segments.
public enum SegmentationError: Error, Hashable, Sendable {
    /// Fewer bytes than a virtio header has.
    case truncatedHeader
    /// A kind of segmentation that was never offered to the kernel: UFO, a tunnelled one, or an unknown one.
    case unsupportedSegmentation
    /// The bytes behind the virtio header are no packet.
    case packet(IPPacketError)
    /// The virtio header announces another version of IP or another protocol than the packet has.
    case protocolMismatch
    /// A fragment was to be segmented, which cannot be done.
    case fragment
    /// Segments of no bytes.
    case zeroSegmentSize
    /// The UDP length is not the number of bytes behind the IP headers.
    case lengthMismatch
    /// A SYN or RST segment longer than the segment size: no two segments of a connection can both have these bits.
    case unsplittableFlags
    /// The checksum to be completed is not behind the IP header and within the packet, or not where the protocol has it.
    case invalidChecksumPosition
}
