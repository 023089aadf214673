import ByteAccess
import CLinux
import Glibc
import IPPacket
import TestSupport
import Testing
import WireGuard

@testable import LinuxHost

/// A real TCP connection across two TUN devices, with what a tunnel does in between and nothing else.
@Suite struct SuperPacketRelayTests {
    /// What happens to a super-packet on its way.
    enum Passage: CaseIterable {
        /// It is written as it was read.
        case whole
        /// It is split, and its segments are written one by one.
        case split
        /// It is split, and its segments are joined again.
        case rejoined
    }

    @Test(arguments: Passage.allCases, ["10.78.0", "fd00:78:"])
    func aStreamCrossesUnchanged(passage: Passage, network: String) throws {
        let content = (0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 11) }
        let separator = network.contains(":") ? ":" : "."
        let (near, far) = ("\(network)\(separator)1", "\(network)\(separator)2")
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let nearDevice = try openDevice("slt-tcp-near", near, through: &channel)
            let other = try makeNetworkNamespace()
            let farDevice = try inNetworkNamespace(other) { try openDevice("slt-tcp-far", far, through: &channel) }
            let listener = try inNetworkNamespace(other) { try listen(at: address(far)) }
            let client = try connect(to: address(far))
            var frame = [UInt8](repeating: 0, count: 65_545)
            var output = [UInt8](repeating: 0, count: 131_072)
            var tally = Tally()
            var server: Int32 = -1
            defer { close(server) }
            var received: [UInt8] = []
            var sent = 0
            var chunk = [UInt8](repeating: 0, count: 65_536)
            while received.count < content.count {
                try carry(from: nearDevice, to: farDevice, passage, &frame, &output, &tally)
                try carry(from: farDevice, to: nearDevice, passage, &frame, &output, &tally)
                if sent < content.count {
                    let number = client.rawValue
                    let written = unsafe content[sent...].withUnsafeBytes {
                        unsafe write(number, $0.baseAddress, $0.count)
                    }
                    if written > 0 { sent += written }
                }
                if server < 0 {
                    server = accept4(listener.rawValue)
                } else {
                    let count = unsafe read(server, &chunk, chunk.count)
                    if count > 0 { received += chunk[..<count] }
                    if count == 0 { throw Impatience(awaited: "the rest of the stream") }
                }
                try waitForPackets(nearDevice, farDevice)
            }
            #expect(received == content)
            // The kernel keeps to the link's limits, and uses them.
            #expect(tally.longest <= 60_000 && tally.longest > 20_000)
            #expect(tally.mostSegments <= 44 && tally.mostSegments > 10)
            switch passage {
            case .whole, .rejoined: #expect(tally.writes < content.count / 5_000)
            case .split: #expect(tally.writes > content.count / 1_420)
            }
        }
    }

    private func openDevice(
        _ name: String, _ text: String, through channel: inout InProcessPrivilegedChannel
    ) throws -> TUNDevice {
        let device = try channel.openTUN(
            named: interfaceName(name), maximumTransmissionUnit: 1_420, options: .superPackets)
        try setKernelSetting("net/ipv6/conf/\(name)/addr_gen_mode", "1")
        if text.contains(":") {
            try run("ip", "addr", "add", "\(text)/64", "dev", name, "nodad")
        } else {
            try run("ip", "addr", "add", "\(text)/24", "dev", name)
        }
        try run("ip", "link", "set", name, "up")
        try awaitLocalRoutes(text)
        return device
    }

    private func listen(at address: IPAddress) throws -> FileDescriptor {
        let socket = try makeSocket(AddressFamily(of: address))
        let number = socket.rawValue
        try unsafe withAddress(address) { pointer, length in
            _ = try systemCall("bind") { unsafe bind(number, pointer, length) }
        }
        _ = try systemCall("listen") { Glibc.listen(number, 1) }
        return socket
    }

    private func connect(to address: IPAddress) throws -> FileDescriptor {
        let socket = try makeSocket(AddressFamily(of: address))
        let number = socket.rawValue
        try unsafe withAddress(address) { pointer, length in
            let result = unsafe Glibc.connect(number, pointer, length)
            if result != 0, errno != EINPROGRESS { throw SystemCallError("connect", errno: errno) }
        }
        return socket
    }

    private func makeSocket(_ family: AddressFamily) throws -> FileDescriptor {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        return FileDescriptor(adopting: try systemCall("socket") { socket(family.socketFamily, type, 0) })
    }

    private func withAddress(
        _ address: IPAddress, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Void
    ) throws {
        var storage = [UInt8](repeating: 0, count: SocketAddress.capacity)
        var span = storage.mutableSpan
        var bytes = span.mutableOctets
        let length = SocketAddress.write(Endpoint(address: address, port: 5_001), to: &bytes)
        try unsafe storage.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            try unsafe body(base.assumingMemoryBound(to: sockaddr.self), socklen_t(length))
        }
    }

    private func accept4(_ number: Int32) -> Int32 {
        clinux_accept4(number, Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue))
    }
}

/// What a relay saw.
private struct Tally {
    var longest = 0
    var mostSegments = 0
    var writes = 0
}

/// Carries everything that waits from one device to another.
private func carry(
    from source: borrowing TUNDevice, to destination: borrowing TUNDevice, _ passage: SuperPacketRelayTests.Passage,
    _ frame: inout [UInt8], _ output: inout [UInt8], _ tally: inout Tally
) throws {
    var joiner = PacketJoiner()
    while true {
        var span = frame.mutableSpan
        var bytes = span.mutableOctets
        guard let length = try source.read(into: &bytes) else { return }
        let header = try VirtioNetworkHeader(parsing: bytes.bytes)
        let packet = bytes.bytes.extracting(10..<length)
        let superPacket = try SuperPacket(parsing: packet, header: header)
        tally.longest = max(tally.longest, packet.byteCount)
        tally.mostSegments = max(tally.mostSegments, superPacket.segmentCount)
        if passage == .whole {
            _ = try destination.write(packet, header: header)
            tally.writes += 1
            continue
        }
        var outputSpan = output.mutableSpan
        var outputBytes = outputSpan.mutableOctets
        var offset = 0
        joiner.removeAll()
        for index in 0..<superPacket.segmentCount {
            let range = offset..<offset + superPacket.length(of: index)
            do {
                var segment = outputBytes.slice(range)
                superPacket.writeSegment(index, of: packet, into: &segment)
                if passage == .split {
                    _ = try destination.write(segment.bytes)
                    tally.writes += 1
                }
            }
            if passage == .rejoined { joiner.append(range, in: &outputBytes) }
            offset = range.upperBound
        }
        joiner.finish(in: &outputBytes)
        let count = joiner.count
        for index in 0..<count {
            _ = try destination.write(index, of: joiner, in: outputBytes.bytes)
            tally.writes += 1
        }
    }
}

/// Waits for a packet at either device; a moment only, as the sockets act without one, too.
private func waitForPackets(_ near: borrowing TUNDevice, _ far: borrowing TUNDevice) throws {
    var entries = [
        pollfd(fd: near.descriptor.rawValue, events: Int16(POLLIN), revents: 0),
        pollfd(fd: far.descriptor.rawValue, events: Int16(POLLIN), revents: 0),
    ]
    // The pointer lives for the call, and the count is the array's.
    _ = try systemCall("poll") { unsafe poll(&entries, 2, 1) }
}
