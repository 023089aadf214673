internal import Glibc
internal import IPPacket

/// A bound socket that queries come to in datagrams.
final class DatagramSocket: Sendable {
    /// What the event loop watches.
    let descriptor: FileDescriptor
    /// The listener's number: sockets of several threads at one address share it, and each can send the others' answers.
    let number: Int
    /// Where it listens.
    let address: AddressAndPort
    /// True when it listens at all of the machine's addresses: what an answer comes from has to be said then.
    let isWildcard: Bool

    /// Takes over a descriptor.
    init(adopting descriptor: consuming FileDescriptor, number: Int, address: AddressAndPort) {
        self.descriptor = descriptor
        self.number = number
        self.address = address
        isWildcard = address.address.isUnspecified
    }

    /// How many datagrams the kernel dropped because the socket's buffer was full.
    var overrunCount: UInt64 {
        // The kernel's `SK_MEMINFO_…`: nine counts, of which the last one is of drops.
        var counts = InlineArray<9, UInt32>(repeating: 0)
        var length = socklen_t(MemoryLayout<InlineArray<9, UInt32>>.size)
        // The pointers live for the call and the length is the array's. An old kernel tells nothing.
        guard unsafe getsockopt(descriptor.rawValue, SOL_SOCKET, SO_MEMINFO, &counts, &length) == 0 else { return 0 }
        return UInt64(counts[8])
    }
}

/// The sockets at one address of the configuration.
final class Listener {
    /// What it is called, in tokens and in the origins of datagrams. No number is used twice.
    let number: Int
    /// Where it listens.
    let address: AddressAndPort
    /// A socket for each thread; the first is the proxy's own thread's.
    let datagrams: [DatagramSocket]
    /// The socket that clients connect to.
    let streams: FileDescriptor

    /// Takes over sockets.
    init(number: Int, address: AddressAndPort, datagrams: [DatagramSocket], streams: consuming FileDescriptor) {
        precondition(!datagrams.isEmpty, "a listener without a socket for datagrams")
        self.number = number
        self.address = address
        self.datagrams = datagrams
        self.streams = streams
    }
}
