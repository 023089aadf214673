import ByteAccess
import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

/// Two tunnels at once in one network namespace.
@Suite struct TwoInstancesTests {
    private func settings(_ number: Int) throws -> PacketTunnelNetworkSettings {
        try tunnelSettings(
            ["10.8.\(number).2/24", "fd00:\(number)::2/64"], included: ["0.0.0.0/0", "::/0"],
            excluded: ["192.168.\(number).0/24", "fd00:99:\(number)::/48"])
    }

    private func withTwoTunnels(_ body: (InterfaceSettings, InterfaceSettings) throws -> Void) throws {
        try withTunnel("slt-one") { _, one, paths in
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let device = try channel.openTUN(named: interfaceName("slt-two"), maximumTransmissionUnit: 1_500)
            try letTheKernelGiveAQueue(to: "slt-two")
            try body(one, interfaceSettings("slt-two", paths))
            _ = device.identifier
        }
    }

    /// The state without the link-local addresses, which are made up anew each time.
    private func comparableState() throws -> [String] {
        try SystemState().parts.flatMap(lines).filter { !$0.contains("fe80:") }
    }

    @Test(arguments: [true, false])
    func theOtherIsUnharmedWhenOneStops(theFirstStops: Bool) throws {
        try withTwoTunnels { one, two in
            let before = try SystemState()
            let (stopping, staying) = theFirstStops ? (one, two) : (two, one)
            let (stoppingNumber, stayingNumber) = theFirstStops ? (1, 2) : (2, 1)
            if !theFirstStops { _ = try staying.apply(settings(stayingNumber), routing: RoutingOptions()) }
            let alone = try comparableState()
            let stoppingMark = try stopping.apply(settings(stoppingNumber), routing: RoutingOptions()).firewallMark
            let between = try comparableState()
            if theFirstStops {
                let stayingMark = try staying.apply(settings(stayingNumber), routing: RoutingOptions()).firewallMark
                #expect(stoppingMark != stayingMark)
            }
            #expect(stopping.clear() == [])
            if !theFirstStops {
                #expect(try comparableState() == alone)
            } else {
                // Not as if the first had never been, for the second chose its table beside it; but nothing of the first's.
                let now = try comparableState()
                #expect(!now.contains { $0.contains("slt-one") && ($0.contains("table") || $0.contains("dev")) })
                #expect(now.filter { $0.contains("51820") } == [])
                #expect(between.filter { $0.contains("51820") } != [])
            }
            for destination in ["203.0.113.1", "2001:db8::1"] {
                let route = try output(of: "ip", "route", "get", destination)
                #expect(route.contains("dev slt-\(stayingNumber == 1 ? "one" : "two") "))
            }
            #expect(try output(of: "sysctl", "-n", "net.ipv4.conf.all.src_valid_mark") == "1\n")
            #expect(staying.clear() == [])
            #expect(try SystemState() == before)
        }
    }

    @Test func theOneThatComesLaterIsAskedFirst() throws {
        try withTwoTunnels { one, two in
            _ = try one.apply(settings(1), routing: RoutingOptions())
            _ = try two.apply(settings(2), routing: RoutingOptions())
            #expect(try output(of: "ip", "route", "get", "203.0.113.1").contains("dev slt-two "))
            _ = two.clear()
            #expect(try output(of: "ip", "route", "get", "203.0.113.1").contains("dev slt-one "))
            _ = one.clear()
        }
    }

    @Test func whatOneSendsItselfDoesNotTakeTheOther() throws {
        try withTwoTunnels { one, two in
            try withLinkedNamespace(localAddresses: ["10.6.0.1/24", "fd00:6::1/64"], remoteAddresses: []) { _ in
                try run("ip", "route", "add", "default", "via", "10.6.0.2")
                try run("ip", "-6", "route", "add", "default", "via", "fd00:6::2")
                let marks = [
                    try one.apply(settings(1), routing: RoutingOptions()).firewallMark,
                    try two.apply(settings(2), routing: RoutingOptions()).firewallMark,
                ]
                for mark in marks {
                    let text = "\(try #require(mark))"
                    for destination in ["203.0.113.1", "2001:db8::1"] {
                        let route = try output(of: "ip", "route", "get", destination, "mark", text)
                        #expect(route.contains("dev slt-near "))
                    }
                }
                _ = one.clear()
                _ = two.clear()
            }
        }
    }

    /// wg-quick's own rules beside ours, in either order; and ours are not taken for ours when they are its.
    @Test func rulesOfOthersAreNeitherTakenNorRemoved() throws {
        try withTunnel("slt-one") { _, one, _ in
            for family in ["-4", "-6"] {
                try run("ip", family, "rule", "add", "not", "fwmark", "51820", "table", "51820")
                try run("ip", family, "rule", "add", "table", "main", "suppress_prefixlength", "0")
            }
            try run("ip", "route", "add", "unreachable", "10.99.0.0/16", "table", "51821")
            let before = try SystemState()
            let applied = try one.apply(settings(1), routing: RoutingOptions())
            #expect(applied.table == 51_822)
            #expect(applied.firewallMark == 51_822)
            _ = one.clear()
            let after = try SystemState()
            #expect(
                after.parts.joined().replacing("src_valid_mark = 1", with: "src_valid_mark = 0")
                    == before.parts.joined())
        }
    }

    @Test func aMarkThatIsGivenIsTheTableTooWhenThatIsFree() throws {
        try withTwoTunnels { one, two in
            let options = RoutingOptions(firewallMark: 0x1234)
            let first = try one.apply(settings(1), routing: options)
            #expect(first.firewallMark == 0x1234 && first.table == 0x1234)
            _ = one.clear()
            try run("ip", "-6", "route", "add", "unreachable", "fd00:77::/32", "table", "4660")
            let second = try two.apply(settings(2), routing: options)
            #expect(second.firewallMark == 0x1234 && second.table == 51_820)
            _ = two.clear()
            // The main table is nobody's own.
            let third = try two.apply(settings(2), routing: RoutingOptions(firewallMark: 254))
            #expect(third.firewallMark == 254 && third.table == 51_820)
            _ = two.clear()
        }
    }

    /// An echo request comes in through the first tunnel while the second has the default route.
    @Test func whatCameInThroughOneIsAnsweredThroughIt() throws {
        try withTunnel("slt-one") { tunnel, one, paths in
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let other = try channel.openTUN(named: interfaceName("slt-two"), maximumTransmissionUnit: 1_500)
            let two = try interfaceSettings("slt-two", paths)
            _ = try one.apply(settings(1), routing: RoutingOptions())
            _ = try two.apply(settings(2), routing: RoutingOptions())
            let request = echoRequest(from: [203, 0, 113, 9], to: [10, 8, 1, 2])
            try inject(request, into: tunnel)
            #expect(try nextEchoReply(from: tunnel) == address("203.0.113.9"))
            // And it is the firewall's marks that did it.
            try run("nft", "delete", "table", "inet", "sluice-slt-one")
            try run("nft", "delete", "table", "inet", "sluice-slt-two")
            try inject(echoRequest(from: [203, 0, 113, 10], to: [10, 8, 1, 2]), into: tunnel)
            #expect(try nextEchoReply(from: other) == address("203.0.113.10"))
            _ = two.clear()
            _ = one.clear()
        }
    }

    private func inject(_ packet: [UInt8], into tunnel: borrowing TUNDevice) throws {
        let span = packet.span
        let isTaken = try tunnel.write(span.octets)
        #expect(isTaken)
    }

    /// The destination of the next echo reply that a tunnel is given.
    private func nextEchoReply(from tunnel: borrowing TUNDevice) throws -> IPAddress {
        while true {
            let packet = try tunnel.nextPacket()
            let span = packet.span
            let header = try IPHeader(parsing: span.octets)
            if header.protocolNumber == .icmpv4, packet[header.headerLength] == 0 { return header.destination }
        }
    }

    /// An ICMP echo request without data (RFC 792).
    private func echoRequest(from source: [UInt8], to destination: [UInt8]) -> [UInt8] {
        var header: [UInt8] = [0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0, 0] + source + destination
        store(checksum(header), at: 10, of: &header)
        var message: [UInt8] = [8, 0, 0, 0, 0, 7, 0, 1]
        store(checksum(message), at: 2, of: &message)
        return header + message
    }

    private func store(_ value: UInt16, at offset: Int, of bytes: inout [UInt8]) {
        bytes[offset] = UInt8(value >> 8)
        bytes[offset + 1] = UInt8(value & 0xFF)
    }

    /// RFC 1071, a word at a time.
    private func checksum(_ bytes: [UInt8]) -> UInt16 {
        var sum: UInt32 = 0
        for index in stride(from: 0, to: bytes.count, by: 2) {
            sum += UInt32(bytes[index]) << 8 | UInt32(bytes[index + 1])
        }
        while sum > 0xFFFF { sum = sum >> 16 + sum & 0xFFFF }
        return ~UInt16(sum)
    }
}
