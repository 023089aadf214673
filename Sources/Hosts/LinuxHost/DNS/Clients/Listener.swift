/// A bound socket that queries come to in datagrams.
final class DatagramSocket: Sendable {
    /// What the event loop watches.
    let descriptor: FileDescriptor
    /// The listener's number: sockets of several threads at one address share it, and each can send the others' answers.
    let number: Int
    /// Where it listens.
    let address: AddressAndPort

    /// Takes over a descriptor.
    init(adopting descriptor: consuming FileDescriptor, number: Int, address: AddressAndPort) {
        self.descriptor = descriptor
        self.number = number
        self.address = address
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
