import ByteAccess
import CLinux
import Glibc
import IPPacket
import TestSupport
import Testing

@testable import LinuxHost

/// Linux itself is the reference: a super-packet that enters by a TUN device with virtio headers is forwarded to one without, for
/// which the kernel splits it. Ours must be the same bytes.
@Suite struct KernelSegmentationTests {
    /// A super-packet of each kind, in which payload and headers vary.
    struct Kind: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var isIPv6 = false
        var isTCP = true
        var flags: UInt8 = 0x10
        var ipOptions: [UInt8] = []
        var extensionHeader: [UInt8] = []
        var fragmentField: UInt16 = 0x4000
        /// Splitting numbers these anew, so that what is joined again differs from them.
        var isJoinable = true

        init(_ name: String, edit: (inout Self) -> Void) {
            testDescription = name
            edit(&self)
        }

        /// The headers, with lengths and partial checksum, and the payload.
        func superPacket(payload: [UInt8]) -> [UInt8] {
            let transportLength = (isTCP ? 32 : 8) + payload.count
            let addresses: [UInt8] =
                isIPv6
                ? hex("fd710000000000000000000000000002fd720000000000000000000000000002")
                : [10, 71, 0, 2, 10, 72, 0, 2]
            var packet: [UInt8]
            if isIPv6 {
                packet = [0x6A, 0xB1, 0x23, 0x45]
                packet += bigEndian(extensionHeader.count + transportLength)
                packet += [extensionHeader.isEmpty ? (isTCP ? 6 : 17) : 60, 17] + addresses
                if !extensionHeader.isEmpty { packet += [isTCP ? 6 : 17] + extensionHeader.dropFirst() }
            } else {
                packet = [0x45 + UInt8(ipOptions.count / 4), 0xB8]
                packet += bigEndian(20 + ipOptions.count + transportLength) + [0xFF, 0xFE]
                packet += bigEndian(Int(fragmentField)) + [17, isTCP ? 6 : 17, 0, 0] + addresses + ipOptions
                packet.replaceSubrange(10..<12, with: bigEndian(Int(~referenceSum(packet))))
            }
            let partial = referenceSum(addresses + [0, isTCP ? 6 : 17] + bigEndian(transportLength))
            packet += bigEndian(40_000) + bigEndian(5_201)
            if isTCP {
                packet += [0xFF, 0xFF, 0xF8, 0x00, 0x12, 0x34, 0x56, 0x78, 0x80, flags, 0x01, 0xF5]
                packet += bigEndian(Int(partial)) + [0, 0] + [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]
            } else {
                packet += bigEndian(transportLength) + bigEndian(Int(partial))
            }
            return packet + payload
        }

        func virtioHeader(segmentSize: Int) -> VirtioNetworkHeader {
            let start = isIPv6 ? 40 + extensionHeader.count : 20 + ipOptions.count
            var header = VirtioNetworkHeader(flags: .needsChecksum)
            header.segmentation = isTCP ? (isIPv6 ? .tcpV6 : .tcpV4) : .udp
            header.hasECN = isTCP && flags & 0x80 != 0
            header.headerLength = UInt16(start + (isTCP ? 32 : 8))
            header.segmentSize = UInt16(segmentSize)
            header.checksumStart = UInt16(start)
            header.checksumOffset = isTCP ? 16 : 6
            return header
        }
    }

    static let kinds: [Kind] = [
        Kind("TCP/IPv4") { _ in },
        Kind("TCP/IPv4 with PSH and FIN") { $0.flags = 0x19 },
        Kind("TCP/IPv4 with ECE") { $0.flags = 0x50 },
        Kind("TCP/IPv4 with CWR") { ($0.flags, $0.isJoinable) = (0x90, false) },
        Kind("TCP/IPv4 without DF") { $0.fragmentField = 0 },
        Kind("TCP/IPv4 with options") { ($0.ipOptions, $0.isJoinable) = ([1, 1, 1, 1, 1, 1, 1, 0], false) },
        Kind("TCP/IPv6") { $0.isIPv6 = true },
        Kind("TCP/IPv6 with PSH") { ($0.isIPv6, $0.flags) = (true, 0x18) },
        Kind("TCP/IPv6 with destination options") {
            ($0.isIPv6, $0.extensionHeader, $0.isJoinable) = (true, [0, 0, 1, 4, 0, 0, 0, 0], false)
        },
        Kind("UDP/IPv4") { $0.isTCP = false },
        Kind("UDP/IPv4 without DF") { ($0.isTCP, $0.fragmentField) = (false, 0) },
        Kind("UDP/IPv6") { ($0.isTCP, $0.isIPv6) = (false, true) },
    ]

    @Test(arguments: kinds)
    func segmentsAreThoseOfTheKernelAndJoinIntoWhatItSplit(kind: Kind) throws {
        try inNewNetworkNamespace {
            let pair = try ForwardingPair.make()
            for (count, size) in [(1_000, 100), (1_001, 100), (5, 1), (64_000, 1_300), (1_001, 1_000), (100, 1_300)] {
                let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ $0 >> 8) }
                let whole = kind.superPacket(payload: payload)
                let header = kind.virtioHeader(segmentSize: size)
                try write(header, [whole], to: pair.near)
                let expected = try (0..<(count + size - 1) / size).map { _ in try nextPacket(from: pair.far) }

                // A router takes one from the time to live; the header's checksum does not count.
                var forwarded = whole
                forwarded[kind.isIPv6 ? 7 : 8] -= 1
                let segments = try split(forwarded, header)
                #expect(segments == expected)

                guard kind.isJoinable, count > size else { continue }
                var train = expected.flatMap { $0 }
                let joined = join(expected.map(\.count), in: &train)
                #expect(joined.count == 1)
                #expect(joined.first?.header == header)
                // The sum of a header changes with the time to live.
                if !kind.isIPv6 { forwarded.replaceSubrange(10..<12, with: joined[0].bytes[10..<12]) }
                #expect(joined.first?.bytes == forwarded)

                // And the kernel takes the joined packet, piece by piece, for the same.
                try write(header, joined[0].pieces, to: pair.near)
                for segment in expected {
                    var again = segment
                    again[kind.isIPv6 ? 7 : 8] -= 1
                    var packet = try nextPacket(from: pair.far)
                    if !kind.isIPv6 { packet.replaceSubrange(10..<12, with: again[10..<12]) }
                    #expect(packet == again)
                }
            }
        }
    }

    @Test(arguments: kinds)
    func aPartialChecksumIsCompletedAsTheKernelDoes(kind: Kind) throws {
        try inNewNetworkNamespace {
            let pair = try ForwardingPair.make()
            var header = kind.virtioHeader(segmentSize: 0)
            (header.segmentation, header.hasECN, header.headerLength) = (.none, false, 0)
            for count in [1, 2, 63, 64, 65, 1_300] {
                let packet = kind.superPacket(payload: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 53) })
                try write(header, [packet], to: pair.near)
                let expected = try nextPacket(from: pair.far)
                var forwarded = packet
                forwarded[kind.isIPv6 ? 7 : 8] -= 1
                if !kind.isIPv6 { forwarded.replaceSubrange(10..<12, with: expected[10..<12]) }
                #expect(try split(forwarded, header) == [expected])
            }
        }
    }

    @Test func aComputedUDPChecksumOfZeroIsWhatTheKernelWrites() throws {
        try inNewNetworkNamespace {
            let pair = try ForwardingPair.make()
            for isIPv6 in [false, true] {
                let kind = Kind("UDP") { ($0.isTCP, $0.isIPv6) = (false, isIPv6) }
                let header = kind.virtioHeader(segmentSize: 2)
                let headersLength = Int(header.headerLength)
                // The payload of the second datagram is its own checksum.
                let probe = try split(kind.superPacket(payload: [1, 2, 0, 0]), header)[1]
                let whole = kind.superPacket(payload: [1, 2] + probe[headersLength - 2..<headersLength])
                try write(header, [whole], to: pair.near)
                var forwarded = whole
                forwarded[isIPv6 ? 7 : 8] -= 1
                let expected = [try nextPacket(from: pair.far), try nextPacket(from: pair.far)]
                #expect(expected[1][headersLength - 2..<headersLength] == [0xFF, 0xFF])
                #expect(try split(forwarded, header) == expected)
            }
        }
    }
}

/// Two TUN devices with forwarding from 10.71/24 and fd71::/64 by the one, with virtio headers, to 10.72/24 and fd72::/64 by the
/// other.
private struct ForwardingPair: ~Copyable {
    let near: FileDescriptor
    let far: FileDescriptor

    static func make() throws -> ForwardingPair {
        let near = try openTUN("slt-near", IFF_TUN | IFF_NO_PI | IFF_VNET_HDR)
        let far = try openTUN("slt-far", IFF_TUN | IFF_NO_PI)
        try setKernelSetting("net/ipv4/ip_forward", "1")
        try setKernelSetting("net/ipv6/conf/all/forwarding", "1")
        for (name, number) in [("slt-near", "71"), ("slt-far", "72")] {
            try setKernelSetting("net/ipv6/conf/\(name)/addr_gen_mode", "1")
            try run("ip", "addr", "add", "10.\(number).0.1/24", "dev", name)
            try run("ip", "addr", "add", "fd\(number)::1/64", "dev", name, "nodad")
            try run("ip", "link", "set", name, "up")
        }
        return ForwardingPair(near: near, far: far)
    }
}

private func openTUN(_ name: String, _ flags: Int32) throws -> FileDescriptor {
    let number = try systemCall("open") { unsafe open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC) }
    let descriptor = FileDescriptor(adopting: number)
    _ = try systemCall("ioctl(TUNSETIFF)") { unsafe clinux_tun_set_interface(number, name, Int16(flags)) }
    return descriptor
}

/// Writes a virtio header and the pieces of a packet with one call.
private func write(
    _ header: VirtioNetworkHeader, _ pieces: [[UInt8]], to descriptor: borrowing FileDescriptor
) throws {
    var bytes = [UInt8](repeating: 0, count: VirtioNetworkHeader.byteCount)
    bytes.edit { header.store(into: &$0) }
    bytes += pieces.joined()
    let number = descriptor.rawValue
    let count = try systemCall("write") { unsafe Glibc.write(number, bytes, bytes.count) }
    #expect(count == bytes.count)
}

/// The next packet of the test's own, waited for.
private func nextPacket(from descriptor: borrowing FileDescriptor) throws -> [UInt8] {
    let number = descriptor.rawValue
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
        try awaitReady(number, "a segment")
        let count = try systemCall("read") { unsafe read(number, &buffer, buffer.count) }
        let packet = Array(buffer[..<count])
        // The kernel sends router solicitations and the like by itself.
        if packet.starts(with: [0x6A]) || packet[0] >> 4 == 4 { return packet }
    }
}

private func split(_ packet: [UInt8], _ header: VirtioNetworkHeader) throws -> [[UInt8]] {
    let superPacket = try SuperPacket(parsing: packet.span.octets, header: header)
    return (0..<superPacket.segmentCount).map { index in
        var output = [UInt8](repeating: 0, count: superPacket.length(of: index))
        output.edit { superPacket.writeSegment(index, of: packet.span.octets, into: &$0) }
        return output
    }
}

/// Joins packets that lie one behind the other in `train`.
private func join(
    _ lengths: [Int], in train: inout [UInt8]
) -> [(header: VirtioNetworkHeader, bytes: [UInt8], pieces: [[UInt8]])] {
    var joiner = PacketJoiner()
    train.edit { train in
        var start = 0
        for length in lengths {
            joiner.append(start..<start + length, in: &train)
            start += length
        }
        joiner.finish(in: &train)
    }
    return (0..<joiner.count).map { index in
        let (header, numbers) = joiner[index]
        let pieces = numbers.map { Array(train[joiner.piece($0)]) }
        return (header, pieces.flatMap { $0 }, pieces)
    }
}

private func bigEndian(_ value: Int) -> [UInt8] {
    [UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)]
}
