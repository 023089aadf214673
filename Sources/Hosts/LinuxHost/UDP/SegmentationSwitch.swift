internal import CLinux
internal import Glibc

/// Whether trains leave a socket whole (`UDP_SEGMENT`). Asked of each new socket once; given up for a socket when its way out
/// cannot finish checksums.
///
/// ```
///           new socket, kernel has it        EIO
///  ┌─────────┐ ───────────────────▶ ┌────┐ ─────▶ ┌─────────┐
///  │ unknown │                      │ on │        │ refused │ ──▶ unknown, with the next socket
///  └─────────┘ ──▶ unsupported      └────┘        └─────────┘
/// ```
struct SegmentationSwitch {
    /// What is known.
    private(set) var condition: OffloadCondition
    private let isWanted: Bool
    private var socket: SocketIdentifier?

    /// A switch that has seen no socket.
    init(isWanted: Bool) {
        self.isWanted = isWanted
        condition = isWanted ? .on : .notWanted
    }

    /// Looks at the socket that the next datagrams leave by.
    @inline(__always)
    mutating func use(_ socket: borrowing UDPSocket) {
        if isWanted, self.socket != socket.identifier { probe(socket) }
    }

    /// Gives trains up for the present socket.
    mutating func refuse(errno: Int32) {
        if condition.isOn { condition = .refused(errno: errno) }
    }

    private mutating func probe(_ socket: borrowing UDPSocket) {
        self.socket = socket.identifier
        var size: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        let number = socket.descriptor.rawValue
        // The pointers live for the call, and the length is the integer's.
        let result = unsafe getsockopt(number, Int32(IPPROTO_UDP), UDP_SEGMENT, &size, &length)
        condition = result == 0 ? .on : .unsupported(errno: errno)
    }
}
