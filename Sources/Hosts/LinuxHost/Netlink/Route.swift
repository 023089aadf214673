internal import IPPacket

/// The way that the kernel chose for a destination.
struct Route: Equatable, Sendable {
    /// The index of the interface that datagrams leave by.
    var interfaceIndex: UInt32
    /// The source address that they get unless they name one; nil when the kernel did not tell.
    var preferredSource: IPAddress?
    /// The route's own MTU in bytes, when it has one.
    var maximumTransmissionUnit: Int?
}
