/// The queues of one TUN device, to be taken one by one. Those that nobody takes are closed.
struct TUNQueues: ~Copyable {
    /// What the privileged side knows the device by.
    let identifier: DeviceIdentifier
    /// The bytes of the virtio header before each packet; 0 for none.
    let headerLength: Int
    /// What the kernel leaves unfinished in packets.
    let offloads: TUNOffloads
    private var descriptors: DescriptorList

    /// Takes over the descriptors that the privileged side opened.
    init(
        adopting descriptors: consuming DescriptorList, identifier: DeviceIdentifier, headerLength: Int,
        offloads: TUNOffloads
    ) {
        self.identifier = identifier
        self.headerLength = headerLength
        self.offloads = offloads
        self.descriptors = descriptors
    }

    /// How many are left.
    var count: Int { descriptors.count }

    /// Takes the next one; nil when none is left.
    mutating func takeFirst() -> TUNDevice? {
        guard let descriptor = descriptors.takeFirst() else { return nil }
        return TUNDevice(
            adopting: descriptor, identifier: identifier, headerLength: headerLength, offloads: offloads)
    }
}
