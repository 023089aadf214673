import ByteAccess
import Glibc
import IPPacket
import Testing
import WireGuard

@testable import LinuxHost

/// What the kernel makes of a transmission, read from a TUN device that the route leads to.
@Suite struct OuterHeaderTests {
    @Test func version4HasNoDFAndTheGivenTOSAndAChecksum() throws {
        try withCapture { pair, device in
            var batch = SendBatch(capacity: 1, byteCapacity: 64)
            batch.add([1, 2, 3, 4], to: Endpoint(address: address("10.9.0.2"), port: 4_242), trafficClass: 0x88)
            _ = batch.flush(to: pair) { Issue.record("\($0)") }
            let packet = try device.nextPacket()
            #expect(packet[0] == 0x45)
            #expect(packet[1] == 0x88)
            // Flags and fragment offset: DF is 0x4000.
            #expect(packet[6] == 0 && packet[7] == 0)
            #expect(packet[8] == 64)
            #expect(packet[26] != 0 || packet[27] != 0)
        }
    }

    @Test func version6HasTheGivenTrafficClassAndAChecksum() throws {
        try withCapture { pair, device in
            var batch = SendBatch(capacity: 1, byteCapacity: 64)
            batch.add([1, 2, 3, 4], to: Endpoint(address: address("fd00:9::2"), port: 4_242), trafficClass: 0x88)
            _ = batch.flush(to: pair) { Issue.record("\($0)") }
            let packet = try device.nextPacket()
            #expect(packet[0] == 0x68 && packet[1] & 0xF0 == 0x80)
            #expect(packet[6] == 17)
            #expect(packet[46] != 0 || packet[47] != 0)
        }
    }

    @Test(arguments: ["10.9.0.2", "fd00:9::2"])
    func whatIsLongerThanTheRouteAllowsIsFragmentedHere(text: String) throws {
        try withCapture { pair, device in
            var batch = SendBatch(capacity: 1, byteCapacity: 4_096)
            batch.add([UInt8](repeating: 7, count: 3_000), to: Endpoint(address: address(text), port: 4_242))
            let result = batch.flush(to: pair) { Issue.record("\($0)") }
            #expect(result == SendResult(sent: 1))
            var length = 0
            var count = 0
            while length < 3_008 {
                let packet = try device.nextPacket()
                #expect(packet.count <= 1_420)
                // IPv6 fragments have a header of 8 bytes more.
                length += packet.count - (packet[0] >> 4 == 4 ? 20 : 48)
                count += 1
            }
            #expect(length == 3_008)
            #expect(count == 3)
        }
    }

    private func withCapture(_ body: (borrowing UDPSocketPair, borrowing TUNDevice) throws -> Void) throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let device = try channel.openTUN(named: interfaceName("slt-outer"), maximumTransmissionUnit: 1_420)
            // No address of the kernel's own, whose router solicitations would be read first.
            try setKernelSetting("net/ipv6/conf/slt-outer/addr_gen_mode", "1")
            try run("ip", "addr", "add", "10.9.0.1/24", "dev", "slt-outer")
            try run("ip", "addr", "add", "fd00:9::1/64", "dev", "slt-outer", "nodad")
            try run("ip", "link", "set", "slt-outer", "up")
            let pair = try channel.openUDPSockets(port: 0, mark: 0)
            try body(pair, device)
        }
    }
}
