import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

/// The way that the kernel takes for a destination while settings are in force, next to a link to a network of the machine's own
/// with the default route: 10.6.0.0/24 and fd00:6::/64 on `slt-near`, and in the main table 10.64.0.0/10 through it.
@Suite struct RouteChoiceTests {
    @Test func aFullTunnelTakesAllButTheLANAndExclusions() throws {
        try check(
            tunnelSettings(
                ["10.8.0.2/24", "fd00:8::2/64"], included: ["0.0.0.0/0", "::/0"],
                excluded: ["192.168.0.0/16", "fd00:9::/32"]),
            RoutingOptions(),
            tunnel: ["203.0.113.1", "10.9.9.9", "10.8.0.77", "2001:db8::1", "fd00:8::77"],
            near: ["10.6.0.2", "10.64.1.1", "192.168.3.4", "fd00:6::2", "fd00:9::1"],
            marked: ["203.0.113.1", "10.9.9.9", "2001:db8::1"])
    }

    @Test func aFullTunnelOfOneFamilyLeavesTheOtherAlone() throws {
        try check(
            tunnelSettings(["10.8.0.2/24"], included: ["0.0.0.0/0"]), RoutingOptions(), tunnel: ["203.0.113.1"],
            near: ["2001:db8::1", "fd00:6::2"])
        try check(
            tunnelSettings(["fd00:8::2/64"], included: ["::/0"]), RoutingOptions(), tunnel: ["2001:db8::1"],
            near: ["203.0.113.1"])
    }

    @Test func aSplitTunnelTakesWhatItNamesAndNotWhatItExcludes() throws {
        try check(
            tunnelSettings(
                ["10.8.0.2/24", "fd00:8::2/64"],
                included: ["10.0.0.0/8", "10.65.0.0/16", "172.16.0.0/12", "fd00::/8"],
                excluded: ["10.2.0.0/16", "10.65.1.0/24", "fd00:9::/32"]),
            RoutingOptions(),
            // The longest route wins, whichever table it is in: 10.65.0.0/16 before the main table's 10.64.0.0/10.
            tunnel: ["10.1.1.1", "10.65.2.2", "172.16.1.1", "fd00:1::1"],
            near: [
                "203.0.113.1", "10.2.1.1", "10.64.1.1", "10.65.1.1", "10.6.0.2", "fd00:9::1", "fd00:6::2",
                "2001:db8::1",
            ])
    }

    @Test func anEndpointInTheTunnelsRoutesIsReachedAroundIt() throws {
        try check(
            tunnelSettings(["10.8.0.2/24"], included: ["192.0.2.0/24"]),
            RoutingOptions(firewallMark: 0x77, endpoints: [address("192.0.2.1")]), tunnel: ["192.0.2.1", "192.0.2.2"],
            near: ["203.0.113.1"], marked: ["192.0.2.1"])
    }

    @Test func markedTrafficGoesRoundASplitTunnelWhenAsked() throws {
        try check(
            tunnelSettings(["10.8.0.2/24", "fd00:8::2/64"], included: ["10.0.0.0/8", "10.65.0.0/16", "fd00::/8"]),
            RoutingOptions(keepsMarkedTrafficOut: true), tunnel: ["10.1.1.1", "10.65.2.2", "fd00:1::1"],
            near: ["203.0.113.1", "10.64.1.1", "10.6.0.2", "fd00:6::2", "2001:db8::1"],
            marked: ["10.1.1.1", "10.65.2.2", "fd00:1::1"])
    }

    @Test func portFiftyThreeOfTheLANTakesTheTunnelOnlyWhenAsked() throws {
        for isAsked in [true, false] {
            try withTunnelAndLAN { settings in
                _ = try settings.apply(
                    tunnelSettings(["10.8.0.2/24", "fd00:8::2/64"], included: ["0.0.0.0/0", "::/0"]),
                    routing: RoutingOptions(routesDNSIntoTunnel: isAsked))
                for (server, family) in [("10.6.0.2", "-4"), ("fd00:6::2", "-6")] {
                    for transport in ["udp", "tcp"] {
                        let route = try output(
                            of: "ip", family, "route", "get", server, "ipproto", transport, "dport", "53")
                        #expect(route.contains(isAsked ? "dev slt-tunnel" : "dev slt-near"))
                    }
                    let other = try output(of: "ip", family, "route", "get", server, "ipproto", "udp", "dport", "54")
                    #expect(other.contains("dev slt-near"))
                }
            }
        }
    }

    private func check(
        _ value: PacketTunnelNetworkSettings, _ options: RoutingOptions, tunnel: [String], near: [String],
        marked: [String] = [], _ location: SourceLocation = #_sourceLocation
    ) throws {
        try withTunnelAndLAN { settings in
            let applied = try settings.apply(value, routing: options)
            for (destinations, device) in [(tunnel, "slt-tunnel"), (near, "slt-near")] {
                for destination in destinations {
                    let route = try output(of: "ip", "route", "get", destination)
                    #expect(route.contains("dev \(device) "), sourceLocation: location)
                }
            }
            guard let mark = applied.firewallMark else { return }
            // What the tunnel itself sends never takes the tunnel.
            for destination in marked + near {
                let route = try output(of: "ip", "route", "get", destination, "mark", "\(mark)")
                #expect(route.contains("dev slt-near "), sourceLocation: location)
            }
        }
    }

    private func withTunnelAndLAN(_ body: (InterfaceSettings) throws -> Void) throws {
        try withTunnel("slt-tunnel") { _, settings, _ in
            try withLinkedNamespace(localAddresses: ["10.6.0.1/24", "fd00:6::1/64"], remoteAddresses: []) { _ in
                try run("ip", "route", "add", "default", "via", "10.6.0.2")
                try run("ip", "route", "add", "10.64.0.0/10", "via", "10.6.0.2")
                try run("ip", "-6", "route", "add", "default", "via", "fd00:6::2")
                try body(settings)
                _ = settings.clear()
            }
        }
    }
}
