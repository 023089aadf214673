import ByteAccess
import IPPacket
import WireGuard

@testable import LinuxHost

extension SendBatch {
    /// Adds a datagram with these bytes.
    mutating func add(
        _ bytes: [UInt8], to remote: Endpoint, from source: LocalSource? = nil, trafficClass: UInt8 = 0,
        peer: UInt32 = 0
    ) {
        do {
            var free = unusedBytes()
            free.copy(bytes.span.octets, to: 0)
        }
        append(
            MessageTrain(offset: 0, length: bytes.count),
            Transmission(
                peer: PeerIndex(rawValue: peer), path: Path(remote: remote, source: source), trafficClass: trafficClass)
        )
    }
}
