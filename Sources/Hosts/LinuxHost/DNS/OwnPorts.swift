internal import Synchronization

/// The UDP ports that the DNS proxy asks servers from at present: what comes out of the TUN device from one of them is its own query,
/// and goes its way.
final class OwnPorts: Sendable {
    private let words = Mutex([UInt64](repeating: 0, count: 1024))

    init() {}

    /// True while the proxy asks from this port.
    func contains(_ port: UInt16) -> Bool {
        words.withLock { $0[Int(port >> 6)] & 1 << (port & 63) != 0 }
    }

    /// The proxy asks from this port now. Before anything is sent from it.
    func insert(_ port: UInt16) {
        words.withLock { $0[Int(port >> 6)] |= 1 << (port & 63) }
    }

    /// The proxy asks from this port no more.
    func remove(_ port: UInt16) {
        words.withLock { $0[Int(port >> 6)] &= ~(1 << (port & 63)) }
    }
}
