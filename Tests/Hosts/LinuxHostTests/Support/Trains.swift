import ByteAccess
import IPPacket
import TestSupport
import WireGuard

@testable import LinuxHost

/// The content of datagram `index` of a test's train: its number, then bytes that depend on it.
func datagram(_ index: Int, length: Int) -> [UInt8] {
    (0..<length).map { offset in
        offset < 4
            ? UInt8(truncatingIfNeeded: index >> (24 - 8 * offset)) : UInt8(truncatingIfNeeded: index &* 7 &+ offset)
    }
}

extension SendBatch {
    /// Adds a train of datagrams numbered from `first`, all of one length but the last.
    mutating func addTrain(
        of count: Int, length: Int, lastLength: Int? = nil, from first: Int = 0, to remote: Endpoint,
        source: LocalSource? = nil, trafficClass: UInt8 = 0, peer: UInt32 = 0
    ) {
        let train = MessageTrain(offset: 0, count: count, stride: length, lastLength: lastLength ?? length)
        do {
            var free = unusedBytes()
            for index in 0..<count {
                let range = train.range(of: index)
                free.copy(datagram(first + index, length: range.count).span.octets, to: range.lowerBound)
            }
        }
        append(
            train,
            Transmission(
                peer: PeerIndex(rawValue: peer), path: Path(remote: remote, source: source),
                trafficClass: trafficClass))
    }
}

/// A datagram as it came, taken out of the train that it came in.
struct Arrival: Equatable {
    var bytes: [UInt8]
    var path: Path
    var trafficClass: UInt8
    /// How many came by the same call and slot.
    var trainCount: Int
}

/// Receives until there are `count` datagrams from the socket of a family.
func arrivals(
    _ count: Int, at pair: borrowing UDPSocketPair, _ family: AddressFamily, limit: Int = .max
) throws -> [Arrival] {
    var batch = ReceiveBatch(capacity: 16)
    var arrivals: [Arrival] = []
    while arrivals.count < count {
        try awaitReady(pair.descriptorNumber(for: family) ?? -1, "datagram \(arrivals.count) of \(count)")
        for index in 0..<(try batch.receive(from: pair, family, limit: limit)) {
            guard let received = batch.datagram(at: index) else { throw Impatience(awaited: "an address") }
            let span = batch.bytes(at: index)
            for message in 0..<received.train.count {
                arrivals.append(
                    Arrival(
                        bytes: Array(span.bytes.extracting(received.train.range(of: message))), path: received.path,
                        trafficClass: received.trafficClass, trainCount: received.train.count))
            }
        }
    }
    return arrivals
}
