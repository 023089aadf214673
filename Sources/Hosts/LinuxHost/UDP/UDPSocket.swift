/// A bound UDP socket of one family, with the options that the privileged side set.
struct UDPSocket: ~Copyable {
    /// What the event loop watches.
    let descriptor: FileDescriptor
    /// What the privileged side knows the socket by.
    let identifier: SocketIdentifier

    /// Takes over a descriptor that the privileged side opened.
    init(adopting descriptor: consuming FileDescriptor, identifier: SocketIdentifier) {
        self.descriptor = descriptor
        self.identifier = identifier
    }
}
