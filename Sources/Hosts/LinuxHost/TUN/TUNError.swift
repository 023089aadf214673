internal import Glibc

/// Why a packet could not be read from a TUN device or written to it.
enum TUNError: Error, Equatable {
    /// The device was deleted (`EBADFD`): nothing will come any more.
    case deviceDeleted
    /// The link is down (`EIO`): packets are refused until it is up again.
    case linkDown
    /// The kernel takes this packet for malformed (`EINVAL`): not IPv4 or IPv6, or shorter than its header.
    case packetRefused
    /// The kernel does not take this super-packet (`EINVAL`), as some versions refuse any: its segments may be written one by
    /// one.
    case superPacketRefused
    /// Anything else.
    case other(SystemCallError)

    /// The error that `errno` stands for after `operation`.
    init(_ operation: StaticString, errno: Int32) {
        switch errno {
        case EBADFD: self = .deviceDeleted
        case EIO: self = .linkDown
        case EINVAL: self = .packetRefused
        default: self = .other(SystemCallError(operation, errno: errno))
        }
    }
}
