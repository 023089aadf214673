internal import Synchronization

/// The ports that sockets of ours have on which servers are asked. Any thread may look: a query that the proxy itself sent must not be
/// taken for a client's when it comes by the TUN device.
final class OwnPorts: Sendable {
    /// The protocol that a port belongs to.
    enum Transport: Sendable {
        case udp, tcp
    }

    private let udp = InlineArray<1024, Atomic<UInt64>> { _ in Atomic(0) }
    private let tcp = InlineArray<1024, Atomic<UInt64>> { _ in Atomic(0) }

    /// No port.
    init() {}

    /// True while a socket of ours has the port.
    func contains(_ port: UInt16, _ transport: Transport = .udp) -> Bool {
        let (word, bit) = Self.place(of: port)
        return switch transport {
        case .udp: udp[word].load(ordering: .acquiring) & bit != 0
        case .tcp: tcp[word].load(ordering: .acquiring) & bit != 0
        }
    }

    /// Notes a port. False when another socket of ours has it already, of the other family of addresses for one.
    func claim(_ port: UInt16, _ transport: Transport) -> Bool {
        let (word, bit) = Self.place(of: port)
        let old =
            switch transport {
            case .udp: udp[word].bitwiseOr(bit, ordering: .acquiringAndReleasing).oldValue
            case .tcp: tcp[word].bitwiseOr(bit, ordering: .acquiringAndReleasing).oldValue
            }
        return old & bit == 0
    }

    /// Forgets a port.
    func release(_ port: UInt16, _ transport: Transport) {
        let (word, bit) = Self.place(of: port)
        switch transport {
        case .udp: udp[word].bitwiseAnd(~bit, ordering: .releasing)
        case .tcp: tcp[word].bitwiseAnd(~bit, ordering: .releasing)
        }
    }

    private static func place(of port: UInt16) -> (word: Int, bit: UInt64) {
        (Int(port >> 6), 1 << UInt64(port & 63))
    }
}
