import ByteAccess
import CMeasurement
import IPPacket

/// Reads what routing a packet needs.
struct HeaderParsing: Benchmark {
    let operations = 8192
    let packet: [UInt8]

    mutating func run() {
        for _ in 0..<operations {
            guard let header = try? IPHeader(parsing: packet.span.octets) else { preconditionFailure("no packet") }
            measurement_consume(UInt64(header.totalLength))
        }
    }
}

/// Reads everything up to the ports.
struct LayoutParsing: Benchmark {
    let operations = 8192
    let packet: [UInt8]

    mutating func run() {
        for _ in 0..<operations {
            guard let layout = try? PacketLayout(parsing: packet.span.octets) else { preconditionFailure("no packet") }
            measurement_consume(UInt64(layout.payload.lowerBound))
        }
    }
}

/// Sums bytes as IP, TCP and UDP do.
struct Checksum: Benchmark {
    let operations: Int
    let bytes: [UInt8]

    init(length: Int) {
        operations = max(16, 1_000_000 / length)
        bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    }

    mutating func run() {
        for _ in 0..<operations {
            var sum = InternetChecksum()
            sum.add(bytes.span.octets)
            measurement_consume(UInt64(sum.checksum))
        }
    }
}
