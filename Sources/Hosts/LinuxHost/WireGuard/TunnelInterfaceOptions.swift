internal import CLinux

/// What an interface is opened with.
struct TunnelInterfaceOptions: Sendable {
    /// The interface to create.
    var name: InterfaceName
    /// The descriptor of a TUN device to take over instead of creating one.
    var tunDescriptor: Int32?
    /// The MTU to begin with, in bytes.
    var maximumTransmissionUnit = 1_420
    /// Which of the kernel's offloads to use.
    var offloads = Offloads()
    /// How many threads move packets.
    var workers = WorkerCount.standard
    /// True when the sockets are open, and sessions live, while the link is up; false when the owner says when.
    var socketsFollowLink = true
    /// Where queries of DNS go that programs send through the device; nil for where all other packets go.
    var queries: QueryInbox?
}

/// How many threads move the packets of an interface.
enum WorkerCount {
    /// Each has buffers of its own, and one moves several Gbit/s.
    static let limit = 4

    /// One for each processor that the process may run on, up to the limit.
    static let standard = min(max(Int(clinux_processor_count()), 1), limit)
}
