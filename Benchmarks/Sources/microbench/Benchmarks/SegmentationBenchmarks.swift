import ByteAccess
import CMeasurement
import IPPacket

/// A super-packet as a TUN device delivers it.
struct TestSuperPacket {
    /// How many packets it stands for.
    static var segmentCount: Int { 44 }
    /// The length of each of them.
    static var segmentLength: Int { 1420 }

    let bytes: [UInt8]
    let header: VirtioNetworkHeader

    /// TCP or UDP over IPv4, for an MTU of 1,420 bytes.
    init(isTCP: Bool) {
        let headersLength = isTCP ? 40 : 28
        let payloadLength = Self.segmentLength - headersLength
        let length = headersLength + Self.segmentCount * payloadLength
        bytes = isTCP ? TestPackets.tcp(length: length) : TestPackets.udp(length: length)
        var header = VirtioNetworkHeader(flags: .needsChecksum)
        header.segmentation = isTCP ? .tcpV4 : .udp
        header.headerLength = UInt16(headersLength)
        header.segmentSize = UInt16(payloadLength)
        header.checksumStart = 20
        header.checksumOffset = isTCP ? 16 : 6
        self.header = header
    }

    /// Its packets, one after the other.
    func segments() -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Self.segmentCount * Self.segmentLength)
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        split(into: &bytes)
        return output
    }

    /// Checks the super-packet and writes its packets, one after the other.
    func split(into output: inout MutableRawSpan) {
        guard let packet = try? SuperPacket(parsing: bytes.span.octets, header: header),
            packet.segmentCount == Self.segmentCount
        else { preconditionFailure("no super-packet") }
        for index in 0..<packet.segmentCount {
            var slot = output.slice(index * Self.segmentLength..<(index + 1) * Self.segmentLength)
            packet.writeSegment(index, of: bytes.span.octets, into: &slot)
        }
    }
}

/// Splits super-packets into packets; an operation is one packet.
struct Splitting: ~Copyable, Benchmark {
    let operations = 16 * TestSuperPacket.segmentCount
    private let packet: TestSuperPacket
    private var output = [UInt8](
        repeating: 0, count: TestSuperPacket.segmentCount * TestSuperPacket.segmentLength)

    init(isTCP: Bool) {
        packet = TestSuperPacket(isTCP: isTCP)
    }

    mutating func run() {
        var output = takeBytes(of: &self.output)
        defer { self.output = output }
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        for _ in 0..<operations / TestSuperPacket.segmentCount {
            packet.split(into: &bytes)
            measurement_consume(UInt64(bytes.bytes.uint8(at: 0)))
        }
    }
}

/// Joins the packets of trains; an operation is one packet.
struct Joining: ~Copyable, Benchmark {
    let operations = 16 * TestSuperPacket.segmentCount
    private let original: [UInt8]
    private var buffer: [UInt8]
    private var joiner = PacketJoiner()
    /// How many packets have to come of a train.
    private let expectedCount: Int

    /// Packets of one flow that follow one another, or, alone, packets of which none follows another.
    init(isTCP: Bool, alone: Bool = false) {
        let train =
            alone
            ? (0..<TestSuperPacket.segmentCount).flatMap {
                TestPackets.tcp(length: TestSuperPacket.segmentLength, sequenceNumber: UInt32($0 * 100_000))
            }
            : TestSuperPacket(isTCP: isTCP).segments()
        original = (0..<16).flatMap { _ in train }
        buffer = original
        expectedCount = alone ? TestSuperPacket.segmentCount : 1
    }

    /// Undoes what joining did to headers.
    mutating func prepare() {
        for index in original.indices { buffer[index] = original[index] }
    }

    mutating func run() {
        var buffer = takeBytes(of: &self.buffer)
        defer { self.buffer = buffer }
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        let length = TestSuperPacket.segmentLength
        for index in 0..<operations {
            if index % TestSuperPacket.segmentCount == 0 { joiner.removeAll() }
            joiner.append(index * length..<(index + 1) * length, in: &bytes)
            if index % TestSuperPacket.segmentCount == TestSuperPacket.segmentCount - 1 {
                joiner.finish(in: &bytes)
                precondition(joiner.count == expectedCount, "packets were joined otherwise")
            }
        }
    }
}
