import FuzzSupport
import IPPacket

/// A train of packets as an input spells it, one instruction after the other, each a byte and what it asks for:
/// - bit 0 clear: a packet of its own: its length in two bytes (high first), and its bytes;
/// - bit 0 set: the packet that would follow the one before: the next sequence number and identification; of the length of the one
///   before, less what the byte behind the instruction says;
/// - bit 1: then another byte changes: its place and what is added to it;
/// - bit 2: then the lengths in the headers are corrected;
/// - bit 3: then the checksums are.
struct Train {
    private(set) var packets: [[UInt8]] = []
    private var input: ArraySlice<UInt8>

    init(spelledBy input: [UInt8]) {
        self.input = input[...]
        while let instruction = self.input.popFirst(), packets.count < PacketJoiner.capacity {
            var packet: [UInt8]
            if instruction & 1 == 0 {
                packet = take(next() << 8 | next())
            } else {
                guard let last = packets.last else { continue }
                packet = follower(of: last)
                packet.removeLast(min(next(), packet.count))
            }
            if instruction & 2 != 0 {
                let (place, change) = (next(), next())
                if place < packet.count { packet[place] &+= UInt8(change) }
            }
            if instruction & 4 != 0 { correctLengths(in: &packet) }
            if instruction & 8 != 0 { correctChecksums(in: &packet) }
            packets.append(packet)
        }
    }

    private mutating func next() -> Int { Int(input.popFirst() ?? 0) }

    private mutating func take(_ count: Int) -> [UInt8] {
        let bytes = input.prefix(count)
        input = input.dropFirst(count)
        return Array(bytes)
    }

    private func follower(of packet: [UInt8]) -> [UInt8] {
        guard let layout = packet.read({ try? PacketLayout(parsing: $0) }) else { return packet }
        var packet = packet
        if layout.header.version == .v4 { add(1, to: &packet, at: 4..<6) }
        if layout.transportProtocol == .tcp, layout.fragment.isWhole {
            add(layout.payload.count, to: &packet, at: layout.transportOffset + 4..<layout.transportOffset + 8)
        }
        return packet
    }

    /// Adds to an integer in network byte order, which wraps around.
    private func add(_ value: Int, to packet: inout [UInt8], at place: Range<Int>) {
        var carry = value
        for index in place.reversed() {
            carry += Int(packet[index])
            packet[index] = UInt8(carry & 0xFF)
            carry >>= 8
        }
    }

    private func correctLengths(in packet: inout [UInt8]) {
        guard packet.count >= 48 else { return }
        func store(_ value: Int, _ offset: Int) {
            packet[offset] = UInt8(value >> 8 & 0xFF)
            packet[offset + 1] = UInt8(value & 0xFF)
        }
        switch packet[0] >> 4 {
        case 4:
            store(packet.count, 2)
            if packet[0] == 0x45, packet[9] == 17 { store(packet.count - 20, 24) }
        case 6:
            store(packet.count - 40, 4)
            if packet[6] == 17 { store(packet.count - 40, 44) }
        default: break
        }
    }

    private func correctChecksums(in packet: inout [UInt8]) {
        guard let layout = packet.read({ try? PacketLayout(parsing: $0) }) else { return }
        packet.edit { packet in
            _ = layout.writeTransportChecksum(in: &packet)
        }
        guard layout.header.version == .v4 else { return }
        var sum = InternetChecksum()
        packet[10] = 0
        packet[11] = 0
        packet.read { sum.add($0.extracting(..<layout.header.headerLength)) }
        packet[10] = UInt8(sum.checksum >> 8)
        packet[11] = UInt8(sum.checksum & 0xFF)
    }
}
