import ByteAccess
import CLinux
import Glibc
import IPPacket
import Provider
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct TUNDeviceTests {
    @Test func opensWithNameAndMTUAndVanishesWithItsLastDescriptor() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            do {
                let device = try channel.openTUN(named: interfaceName("slt-open"), maximumTransmissionUnit: 1_420)
                #expect(try device.currentName() == interfaceName("slt-open"))
                let query = try InterfaceQuery()
                #expect(try query.maximumTransmissionUnit(of: interfaceName("slt-open")) == 1_420)
                #expect(try query.isUp(interfaceName("slt-open")) == false)
                try channel.closeTUN(device.identifier)
            }
            let query = try InterfaceQuery()
            // A command that another test starts at this moment has all descriptors, too, until it is executed.
            try eventually("the end of the device") { () throws -> Void? in
                do throws(SystemCallError) {
                    _ = try query.maximumTransmissionUnit(of: interfaceName("slt-open"))
                    return nil
                } catch {
                    #expect(error == SystemCallError("ioctl(SIOCGIFMTU)", errno: ENODEV))
                    return ()
                }
            }
        }
    }

    @Test func refusesANameThatIsInUse() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let device = try channel.openTUN(named: interfaceName("slt-busy"), maximumTransmissionUnit: 1_420)
            #expect(throws: PrivilegedFailure.systemCall(SystemCallError("ioctl(TUNSETIFF)", errno: EBUSY))) {
                _ = try channel.openTUN(named: interfaceName("slt-busy"), maximumTransmissionUnit: 1_420)
            }
            #expect(throws: PrivilegedFailure.systemCall(SystemCallError("ioctl(TUNSETIFF)", errno: EINVAL))) {
                _ = try channel.openTUN(named: interfaceName("lo"), maximumTransmissionUnit: 1_420)
            }
            #expect(try device.currentName() == interfaceName("slt-busy"))
        }
    }

    @Test func carriesWholePacketsBothWays() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let device = try channel.openTUN(named: interfaceName("slt-carry"), maximumTransmissionUnit: 1_420)
            try run("sysctl", "-qw", "net.ipv6.conf.slt-carry.disable_ipv6=1")
            try run("ip", "addr", "add", "10.77.0.1/24", "dev", "slt-carry")
            try run("ip", "link", "set", "slt-carry", "up")
            var storage = [UInt8](repeating: 0, count: 2_048)
            do {
                var span = storage.mutableSpan
                var bytes = span.mutableOctets
                #expect(try device.read(into: &bytes) == nil)
            }
            let pair = try channel.openUDPSockets(port: 0, mark: 0)
            var batch = SendBatch(capacity: 4, byteCapacity: 2_048)
            batch.add([1, 2, 3, 4, 5], to: Endpoint(address: address("10.77.0.2"), port: 4_242))
            #expect(batch.flush(to: pair, onFailure: { _ in }).sent == 1)
            let packet = try device.nextPacket()
            #expect(packet.count == 20 + 8 + 5)
            #expect(packet[0] == 0x45)
            #expect(packet[12..<20] == [10, 77, 0, 1, 10, 77, 0, 2])
            #expect(packet[28...] == [1, 2, 3, 4, 5])

            // The same packet the other way: addresses and ports change places, so that all checksums stay right.
            var answer = packet
            answer.replaceSubrange(12..<16, with: packet[16..<20])
            answer.replaceSubrange(16..<20, with: packet[12..<16])
            answer.replaceSubrange(20..<22, with: packet[22..<24])
            answer.replaceSubrange(22..<24, with: packet[20..<22])
            #expect(try device.write(answer.span.octets) == true)
            let number = pair.descriptorNumber(for: .v4) ?? -1
            try awaitReady(number, "the answer")
            storage = [UInt8](repeating: 0, count: 64)
            let count = try systemCall("recv") { unsafe recv(number, &storage, 64, 0) }
            #expect(storage[..<count] == [1, 2, 3, 4, 5])
        }
    }

    @Test func tellsLinkStateMalformedPacketsAndDeletionApart() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            var loop = try EventLoop()
            var events = EventBuffer(capacity: 4)
            let device = try channel.openTUN(named: interfaceName("slt-state"), maximumTransmissionUnit: 1_420)
            let packet = minimalPacket
            #expect(device.isLinkUp == false)
            #expect(throws: TUNError.linkDown) { try device.write(packet.span.octets) }
            try run("ip", "link", "set", "slt-state", "up")
            #expect(device.isLinkUp == true)
            #expect(try device.write(packet.span.octets) == true)
            let malformed: [UInt8] = [0x15, 0, 0, 20]
            #expect(throws: TUNError.packetRefused) { try device.write(malformed.span.octets) }
            try run("ip", "link", "set", "slt-state", "down")
            #expect(device.isLinkUp == false)

            try loop.register(device.descriptor, token: 1, interest: .readable)
            try run("ip", "link", "delete", "slt-state")
            try loop.wait(until: HostClock.now() + patience, into: &events)
            #expect(events.count == 1)
            #expect(events[0].readiness.contains(.error))
            var storage = [UInt8](repeating: 0, count: 64)
            do {
                var span = storage.mutableSpan
                var bytes = span.mutableOctets
                do throws(TUNError) {
                    let count = try device.read(into: &bytes)
                    Issue.record("read \(String(describing: count)) from a deleted device")
                } catch { #expect(error == .deviceDeleted) }
            }
            #expect(throws: TUNError.deviceDeleted) { try device.write(packet.span.octets) }
            #expect(throws: TUNError.deviceDeleted) { try device.currentName() }
            #expect(device.isLinkUp == false)
        }
    }

    @Test func followsRenamesAndWorksInAnotherNamespace() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let device = try channel.openTUN(named: interfaceName("slt-old"), maximumTransmissionUnit: 1_420)
            try run("ip", "link", "set", "slt-old", "name", "slt-new")
            #expect(try device.currentName() == interfaceName("slt-new"))
            let other = try makeNetworkNamespace()
            try run("ip", "link", "set", "slt-new", "netns", path(of: other))
            #expect(device.isLinkUp == false)
            try inNetworkNamespace(other) {
                try run("sysctl", "-qw", "net.ipv6.conf.slt-new.disable_ipv6=1")
                try run("ip", "link", "set", "slt-new", "up", "mtu", "1300")
            }
            #expect(device.isLinkUp == true)
            #expect(try device.currentName() == interfaceName("slt-new"))
            #expect(try device.write(minimalPacket.span.octets) == true)
            let query = try InterfaceQuery()
            #expect(throws: SystemCallError("ioctl(SIOCGIFMTU)", errno: ENODEV)) {
                try query.maximumTransmissionUnit(of: interfaceName("slt-new"))
            }
        }
    }

    @Test func adoptsAnInheritedDescriptorOnlyOfItsOwnKind() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            // An attached descriptor, as another program would hand it over.
            let inherited = try systemCall("open") { unsafe open("/dev/net/tun", O_RDWR) }
            _ = try systemCall("ioctl") {
                unsafe clinux_tun_set_interface(inherited, "slt-adopt", Int16(IFF_TUN | IFF_NO_PI))
            }
            let device = try channel.adoptTUN(descriptor: inherited)
            #expect(try device.currentName() == interfaceName("slt-adopt"))
            #expect(fcntl(device.descriptor.rawValue, F_GETFL) & O_NONBLOCK != 0)
            #expect(fcntl(device.descriptor.rawValue, F_GETFD) & FD_CLOEXEC != 0)

            let plain = FileDescriptor(
                adopting: try systemCall("open") { unsafe open("/dev/null", O_RDWR | O_CLOEXEC) })
            #expect(throws: PrivilegedFailure.unsuitableDescriptor) {
                _ = try channel.adoptTUN(descriptor: plain.rawValue)
            }
            let other = FileDescriptor(
                adopting: try systemCall("open") { unsafe open("/dev/net/tun", O_RDWR | O_CLOEXEC) })
            let number = other.rawValue
            _ = try systemCall("ioctl") {
                unsafe clinux_tun_set_interface(number, "slt-other", Int16(IFF_TAP | IFF_NO_PI))
            }
            #expect(throws: PrivilegedFailure.unsuitableDescriptor) {
                _ = try channel.adoptTUN(descriptor: other.rawValue)
            }
        }
    }

    /// An IPv4 header without payload, to an address that nobody has.
    private var minimalPacket: [UInt8] {
        [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]
    }
}
