import ByteAccess
import CLinux
import Glibc
import IPPacket
import Testing
import WireGuard

@testable import LinuxHost

/// Super-packets between a TUN device and the kernel.
@Suite struct SuperPacketTests {
    @Test func aDeviceHasHeadersAndOffloadsWhereTheyAreWanted() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let plain = try channel.openTUN(named: interfaceName("slt-plain"), maximumTransmissionUnit: 1_420)
            #expect(plain.headerLength == 0)
            #expect(plain.offloads == .none)
            #expect(plain.maximumFrameLength == 65_535)
            var device = try channel.openTUN(
                named: interfaceName("slt-super"), maximumTransmissionUnit: 1_420,
                options: TUNOptions(wantsOffloads: true, transmitQueueLength: 123))
            #expect(device.headerLength == 10)
            #expect(device.maximumFrameLength == 65_545)
            // UDP since Linux 6.2.
            #expect(device.offloads == .all)
            #expect(try queueLength("slt-plain") == 500)
            #expect(try queueLength("slt-super") == 123)
            try device.setOffloads(.none)
            #expect(device.offloads == .none)
        }
    }

    @Test(arguments: ["10.77.0.2", "fd00:77::2"])
    func aTrainOfAProgramIsReadAsOneSuperPacketUpToTheLimits(text: String) throws {
        try withSuperPacketDevice { device in
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 0, mark: 0)
            let remote = Endpoint(address: address(text), port: 4_242)
            var batch = SendBatch(capacity: 4, byteCapacity: 131_072)
            batch.addTrain(of: 44, length: 1_300, lastLength: 9, to: remote)
            #expect(batch.flush(to: pair) { Issue.record("\($0)") } == SendResult(sent: 44, sentInTrains: 44))
            let frame = try device.nextPacket()
            let header = try VirtioNetworkHeader(parsing: frame.span.octets)
            #expect(header.segmentation == .udp)
            #expect(header.flags == .needsChecksum)
            #expect(header.segmentSize == 1_300)
            let packet = Array(frame[10...])
            let overhead = text.contains(":") ? 48 : 28
            #expect(packet.count == overhead + 43 * 1_300 + 9)
            let superPacket = try SuperPacket(parsing: packet.span.octets, header: header)
            #expect(superPacket.segmentCount == 44)
            for index in 0..<44 {
                #expect(
                    segment(index, of: superPacket, packet).dropFirst(overhead)
                        == datagram(index, length: index == 43 ? 9 : 1_300)[...])
            }

            // As many segments as one message can have are still whole. What has more bytes than the link's limit the kernel
            // cuts by itself.
            batch.addTrain(of: 64, length: 900, to: remote)
            _ = batch.flush(to: pair) { Issue.record("\($0)") }
            #expect(try device.nextPacket().count == 10 + overhead + 64 * 900)
            batch.addTrain(of: 47, length: 1_300, to: remote)
            _ = batch.flush(to: pair) { Issue.record("\($0)") }
            for index in 0..<47 {
                let frame = try device.nextPacket()
                let header = try VirtioNetworkHeader(parsing: frame.span.octets)
                #expect(header.segmentation == .none)
                #expect(frame.dropFirst(10 + overhead) == datagram(index, length: 1_300)[...])
            }
            // Without offloads packets come finished, one by one, behind headers of zeros.
            try device.setOffloads(.none)
            batch.addTrain(of: 3, length: 100, to: remote)
            _ = batch.flush(to: pair) { Issue.record("\($0)") }
            for index in 0..<3 {
                let frame = try device.nextPacket()
                #expect(frame[..<10] == [UInt8](repeating: 0, count: 10)[...])
                #expect(frame.dropFirst(10 + overhead) == datagram(index, length: 100)[...])
            }
        }
    }

    @Test(arguments: ["10.77.0.2", "fd00:77::2"], [false, true])
    func joinedDatagramsReachASocketInOneWrite(text: String, wantsTrains: Bool) throws {
        try withSuperPacketDevice { device in
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 4_242, mark: 0, wantsTrains: wantsTrains)
            var packets = try reflectedDatagrams(20, length: 1_000, lastLength: 10, at: &device, pair, text)
            var joiner = PacketJoiner()
            let buffer = join(&packets, &joiner)
            let count = joiner.count
            #expect(count == 1)
            let header = joiner[0].header
            #expect(header.segmentation == .udp)
            let isWritten = try device.write(0, of: joiner, in: buffer.span.octets)
            #expect(isWritten)
            let arrived = try arrivals(20, at: pair, AddressFamily(of: address(text)))
            #expect(arrived.map(\.bytes) == (0..<20).map { datagram($0, length: $0 == 19 ? 10 : 1_000) })
            #expect(arrived.allSatisfy { $0.trainCount == (wantsTrains ? 20 : 1) })
            #expect(arrived.allSatisfy { $0.path.remote.address == address(text) })
        }
    }

    @Test(arguments: ["10.77.0.2", "fd00:77::2"])
    func whatIsRefusedTogetherIsWrittenSeparately(text: String) throws {
        try withSuperPacketDevice { device in
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let pair = try channel.openUDPSockets(port: 4_242, mark: 0, wantsTrains: true)
            var packets = try reflectedDatagrams(5, length: 500, lastLength: 500, at: &device, pair, text)
            // The kernel takes no super-packet whose segments have no length.
            var header = VirtioNetworkHeader(flags: .needsChecksum)
            header.segmentation = .udp
            header.checksumStart = text.contains(":") ? 40 : 20
            header.checksumOffset = 6
            let packet = packets[0]
            do throws(TUNError) {
                _ = try device.write(packet.span.octets, header: header)
                Issue.record("the kernel took a super-packet without segments")
            } catch {
                #expect(error == .superPacketRefused)
            }
            let malformed: [UInt8] = [0x15, 0, 0, 20]
            do throws(TUNError) {
                _ = try device.write(malformed.span.octets)
                Issue.record("the kernel took a packet of no version")
            } catch {
                #expect(error == .packetRefused)
            }

            var joiner = PacketJoiner()
            let buffer = join(&packets, &joiner)
            let count = joiner.count
            #expect(count == 1)
            let dropped = try device.writeSeparately(0, of: joiner, in: buffer.span.octets)
            #expect(dropped == 0)
            let arrived = try arrivals(5, at: pair, AddressFamily(of: address(text)))
            #expect(arrived.map(\.bytes) == (0..<5).map { datagram($0, length: 500) })
        }
    }

    @Test(arguments: [10, 12], [true, false])
    func anInheritedDeviceKeepsItsHeaders(headerLength: Int32, wantsOffloads: Bool) throws {
        try inNewNetworkNamespace {
            let inherited = try systemCall("open") { unsafe open("/dev/net/tun", O_RDWR) }
            _ = try systemCall("ioctl") {
                unsafe clinux_tun_set_interface(
                    inherited, "slt-adopt", Int16(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
            }
            _ = try systemCall("ioctl") { clinux_tun_set_header_size(inherited, headerLength) }
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let device = try channel.adoptTUN(descriptor: inherited, wantsOffloads: wantsOffloads)
            #expect(device.headerLength == Int(headerLength))
            #expect(device.offloads == (wantsOffloads ? .all : .none))
            try bringUp("slt-adopt")
            let pair = try channel.openUDPSockets(port: 4_242, mark: 0)
            var batch = SendBatch(capacity: 4, byteCapacity: 65_536)
            batch.addTrain(
                of: 47, length: 1_300, to: Endpoint(address: address("10.77.0.2"), port: 4_242))
            _ = batch.flush(to: pair) { Issue.record("\($0)") }
            var frame = try device.nextPacket()
            // It is longer than the limits, where they are set, and comes one by one either way.
            #expect(frame.count == Int(headerLength) + 1_328)
            // And back as it came, with its addresses exchanged.
            let header = try VirtioNetworkHeader(parsing: frame.span.octets)
            frame.removeFirst(Int(headerLength))
            exchangeEnds(of: &frame)
            let isWritten = try device.write(frame.span.octets, header: header)
            #expect(isWritten)
            #expect(try arrivals(1, at: pair, .v4)[0].bytes == datagram(0, length: 1_300))
        }
    }

    @Test func aHeaderOfAnotherLengthIsUnsuitable() throws {
        try inNewNetworkNamespace {
            let inherited = FileDescriptor(adopting: try systemCall("open") { unsafe open("/dev/net/tun", O_RDWR) })
            let number = inherited.rawValue
            _ = try systemCall("ioctl") {
                unsafe clinux_tun_set_interface(number, "slt-adopt", Int16(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR))
            }
            _ = try systemCall("ioctl") { clinux_tun_set_header_size(number, 20) }
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            #expect(throws: PrivilegedFailure.unsuitableDescriptor) {
                _ = try channel.adoptTUN(descriptor: number, wantsOffloads: true)
            }
        }
    }

    @Test func queuesShareADevice() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            var queues = try channel.openTUNQueues(
                named: interfaceName("slt-queues"), maximumTransmissionUnit: 1_420,
                options: TUNOptions(wantsOffloads: true, queues: 2))
            #expect(queues.count == 2)
            guard let first = queues.takeFirst(), let second = queues.takeFirst() else {
                throw Impatience(awaited: "two")
            }
            #expect(first.headerLength == 10 && second.headerLength == 10)
            #expect(first.offloads == .all && second.offloads == .all)
            try bringUp("slt-queues")
            // Each queue gets some of many flows, and keeps the order of each.
            for port in 0..<64 {
                let pair = try channel.openUDPSockets(port: UInt16(41_000 + port), mark: 0)
                var batch = SendBatch(capacity: 4, byteCapacity: 1_024)
                let remote = Endpoint(address: address("10.77.0.2"), port: 4_242)
                batch.addTrain(of: 1, length: 16, from: 0, to: remote)
                batch.addTrain(of: 1, length: 17, from: 1, to: remote)
                #expect(batch.flush(to: pair) { Issue.record("\($0)") }.sent == 2)
            }
            let atFirst = try flows(at: first)
            let atSecond = try flows(at: second)
            #expect(!atFirst.isEmpty && !atSecond.isEmpty)
            #expect(atFirst.count + atSecond.count == 64)
            #expect(Set(atFirst.keys).isDisjoint(with: atSecond.keys))
            #expect((Array(atFirst.values) + Array(atSecond.values)).allSatisfy { $0 == [44, 45] })
            for count in [0, 65] {
                #expect(throws: PrivilegedFailure.systemCall(SystemCallError("ioctl(TUNSETIFF)", errno: EINVAL))) {
                    _ = try channel.openTUNQueues(
                        named: interfaceName("slt-many"), maximumTransmissionUnit: 1_420,
                        options: TUNOptions(queues: count))
                }
            }
        }
    }

    // MARK: Steps

    private func withSuperPacketDevice(_ body: (inout TUNDevice) throws -> Void) throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            var device = try channel.openTUN(
                named: interfaceName("slt-super"), maximumTransmissionUnit: 1_420, options: .superPackets)
            try bringUp("slt-super")
            try body(&device)
        }
    }

    private func bringUp(_ name: String) throws {
        // No address of the kernel's own, whose router solicitations would be read first.
        try setKernelSetting("net/ipv6/conf/\(name)/addr_gen_mode", "1")
        try run("ip", "addr", "add", "10.77.0.1/24", "dev", name)
        try run("ip", "addr", "add", "fd00:77::1/64", "dev", name, "nodad")
        try run("ip", "link", "set", name, "up")
        try awaitLocalRoutes("fd00:77::1")
    }

    private func queueLength(_ name: String) throws -> Int32 {
        let control = FileDescriptor(
            adopting: try systemCall("socket") { socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0) })
        let number = control.rawValue
        return try systemCall("ioctl") { unsafe clinux_interface_get_transmit_queue_length(number, name) }
    }

    /// Packets with which `text` answers to the pair's own port: what the pair sent there, turned round by exchanging ends,
    /// which keeps all checksums right.
    private func reflectedDatagrams(
        _ count: Int, length: Int, lastLength: Int, at device: inout TUNDevice, _ pair: borrowing UDPSocketPair,
        _ text: String
    ) throws -> [[UInt8]] {
        try device.setOffloads(.none)
        var batch = SendBatch(capacity: 4, byteCapacity: 65_536)
        batch.addTrain(
            of: count, length: length, lastLength: lastLength, to: Endpoint(address: address(text), port: 4_242))
        _ = batch.flush(to: pair) { Issue.record("\($0)") }
        return try (0..<count).map { _ in
            var packet = Array(try device.nextPacket()[10...])
            exchangeEnds(of: &packet)
            return packet
        }
    }

    /// Exchanges addresses and ports of a UDP packet.
    private func exchangeEnds(of packet: inout [UInt8]) {
        let (start, width) = packet[0] >> 4 == 4 ? (12, 4) : (8, 16)
        let ports = packet[0] >> 4 == 4 ? 20 : 40
        for offset in 0..<width { packet.swapAt(start + offset, start + width + offset) }
        for offset in 0..<2 { packet.swapAt(ports + offset, ports + 2 + offset) }
    }

    /// Joins packets in a buffer where they lie one behind the other, 32 bytes apart.
    private func join(_ packets: inout [[UInt8]], _ joiner: inout PacketJoiner) -> [UInt8] {
        var buffer: [UInt8] = []
        var ranges: [Range<Int>] = []
        for packet in packets {
            buffer += [UInt8](repeating: 0xEE, count: 32)
            ranges.append(buffer.count..<buffer.count + packet.count)
            buffer += packet
        }
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        for range in ranges { joiner.append(range, in: &bytes) }
        joiner.finish(in: &bytes)
        return buffer
    }

    private func segment(_ index: Int, of superPacket: SuperPacket, _ packet: [UInt8]) -> [UInt8] {
        var segment = [UInt8](repeating: 0, count: superPacket.length(of: index))
        var span = segment.mutableSpan
        var bytes = span.mutableOctets
        superPacket.writeSegment(index, of: packet.span.octets, into: &bytes)
        return segment
    }

    /// What waits at a queue: for each source port, the lengths of its packets in order.
    private func flows(at queue: borrowing TUNDevice) throws -> [UInt16: [Int]] {
        var flows: [UInt16: [Int]] = [:]
        var storage = [UInt8](repeating: 0, count: queue.maximumFrameLength)
        while true {
            var span = storage.mutableSpan
            var bytes = span.mutableOctets
            guard let count = try queue.read(into: &bytes) else { return flows }
            flows[bytes.bytes.bigEndianUInt16(at: 30), default: []].append(count - 10)
        }
    }
}
