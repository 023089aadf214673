import Glibc
import IPPacket
import WireGuard

@testable import LinuxHost

extension ReceiveBatch {
    /// Waits for datagrams on the socket of a family, receives, and describes the first one.
    mutating func waitForOne(from pair: borrowing UDPSocketPair, _ family: AddressFamily) throws -> ReceivedDatagram {
        try awaitReady(pair.descriptorNumber(for: family) ?? -1, "a datagram")
        guard try receive(from: pair, family) > 0, let datagram = datagram(at: 0) else {
            throw Impatience(awaited: "a datagram with an address")
        }
        return datagram
    }

    /// Receives from the socket of a family.
    mutating func receive(
        from pair: borrowing UDPSocketPair, _ family: AddressFamily, limit: Int = .max
    ) throws -> Int {
        switch family {
        case .v4:
            switch pair.v4 {
            case .some(let socket): return try receive(from: socket, limit: limit)
            case .none: return 0
            }
        case .v6:
            switch pair.v6 {
            case .some(let socket): return try receive(from: socket, limit: limit)
            case .none: return 0
            }
        }
    }
}
