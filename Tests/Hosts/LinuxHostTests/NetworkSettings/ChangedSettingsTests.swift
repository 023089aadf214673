import Glibc
import IPPacket
import Provider
import TestSupport
import Testing

@testable import LinuxHost

/// From settings to settings.
@Suite struct ChangedSettingsTests {
    static let full = ["0.0.0.0/0", "::/0"]

    private func comparableState() throws -> [String] {
        try SystemState().parts.flatMap(lines).filter { !$0.contains("fe80:") }.map { line in
            // The kernel numbers links anew.
            line.drop { $0.isNumber }.description
        }.sorted()
    }

    private static let pairs: [([String], [String], [String], [String], [String], [String])] = [
        // Addresses, included, excluded; before and after.
        (["10.8.0.2/24"], full, [], ["10.8.0.2/24"], full, ["10.9.0.0/16"]),
        (["10.8.0.2/24"], ["0.0.0.0/0"], ["10.9.0.0/16"], ["10.8.0.2/24"], ["10.9.0.0/16"], []),
        (["10.8.0.2/24", "fd00:8::2/64"], full, [], ["10.8.0.2/24"], ["10.0.0.0/8"], []),
        (["10.8.0.2/24"], ["10.0.0.0/8"], [], ["10.8.0.2/24", "fd00:8::2/64"], full, []),
        // The second address of a network goes with the first, and routes with the last address.
        (["10.8.0.2/24", "10.8.0.3/24"], full, [], ["10.8.0.3/24"], full, []),
        (["10.8.0.2/24"], ["10.9.0.0/16"], [], ["10.8.0.3/24"], ["10.9.0.0/16"], []),
        (["10.8.0.2/24", "fd00:8::2/64"], full, [], ["10.7.0.2/16", "fd00:8::2/48"], full, []),
        (["10.8.0.2/24"], ["10.9.0.0/16"], ["10.9.1.0/24"], ["10.8.0.2/24"], ["10.9.0.0/16", "10.9.1.0/24"], []),
    ]

    @Test(arguments: pairs)
    func theWayDoesNotMatter(
        pair: ([String], [String], [String], [String], [String], [String])
    ) throws {
        let first = try tunnelSettings(pair.0, included: pair.1, excluded: pair.2)
        let second = try tunnelSettings(pair.3, included: pair.4, excluded: pair.5)
        let direct = try withTunnel("slt-change") { _, settings, _ in
            _ = try settings.apply(second, routing: RoutingOptions())
            defer { _ = settings.clear() }
            return try comparableState()
        }
        try withTunnel("slt-change") { _, settings, _ in
            let before = try SystemState()
            _ = try settings.apply(first, routing: RoutingOptions())
            _ = try settings.apply(second, routing: RoutingOptions())
            #expect(try comparableState() == direct)
            #expect(settings.clear() == [])
            #expect(try SystemState() == before)
        }
    }

    @Test func equalSettingsChangeNothing() throws {
        try withTunnel("slt-change") { _, settings, _ in
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let value = try tunnelSettings(
                ["10.8.0.2/24", "fd00:8::2/64"], included: Self.full, excluded: ["10.9.0.0/16"])
            let first = try settings.apply(value, routing: RoutingOptions())
            let netlink = try channel.openNetlink()
            let second = try settings.apply(value, routing: RoutingOptions())
            #expect(first == second)
            var changes: [NetlinkChange] = []
            try netlink.readChanges { changes.append($0) }
            #expect(changes == [])
            _ = settings.clear()
        }
    }

    @Test func onlyTheDifferenceIsTouched() throws {
        try withTunnel("slt-change") { _, settings, _ in
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            _ = try settings.apply(
                tunnelSettings(["10.8.0.2/24", "fd00:8::2/64"], included: Self.full), routing: RoutingOptions())
            let netlink = try channel.openNetlink()
            _ = try settings.apply(
                tunnelSettings(["10.8.0.2/24", "fd00:8::2/64", "10.7.0.2/24"], included: Self.full),
                routing: RoutingOptions())
            var subjects: Set<NetlinkSubject> = []
            var added: [IPAddress] = []
            try netlink.readChanges { change in
                if let subject = change.subject { subjects.insert(subject) }
                if case .addressAdded(let address, _) = change { added.append(address) }
            }
            #expect(added == [address("10.7.0.2")])
            // The routes are those that the kernel makes for the address.
            #expect(
                subjects == [NetlinkSubject(kind: .address, family: .v4), NetlinkSubject(kind: .route, family: .v4)])
            _ = settings.clear()
        }
    }

    @Test func aFailureBringsBackWhatWas() throws {
        try withTunnel("slt-change") { _, settings, paths in
            let value = try tunnelSettings(
                ["10.8.0.2/24", "fd00:8::2/64"], included: Self.full, excluded: ["10.9.0.0/16"], mtu: 1_400)
            let applied = try settings.apply(value, routing: RoutingOptions())
            try run("ip", "link", "add", "slt-other", "type", "veth")
            try run("ip", "link", "set", "slt-other", "up")
            try run("ip", "route", "add", "10.77.0.0/16", "dev", "slt-other")
            let before = try comparableState()
            var other = try tunnelSettings(
                ["10.8.0.3/24", "10.7.0.2/24"], included: ["10.77.0.0/16", "10.9.0.0/16"], excluded: ["10.9.1.0/24"],
                mtu: 1_300)
            let error = #expect(throws: InterfaceSettingsError.self) {
                try settings.apply(other, routing: RoutingOptions(firewallMark: 7))
            }
            #expect(error?.description == "cannot add the route 10.77.0.0/16: File exists")
            #expect(try comparableState() == before)
            // And it goes on from there.
            #expect(try settings.apply(value, routing: RoutingOptions()) == applied)
            try write("", to: "\(paths.resolverFile)")
            other = value
            other.mtu = 80_000
            #expect(throws: InterfaceSettingsError.self) { try settings.apply(other, routing: RoutingOptions()) }
            #expect(try comparableState() == before)
            _ = settings.clear()
        }
    }

    @Test func aThousandRoutesComeAndGo() throws {
        try withTunnel("slt-change") { _, settings, _ in
            let before = try SystemState()
            let even = (0..<1_000).filter { $0 % 2 == 0 }.map { "10.\($0 / 256 + 100).\($0 % 256).0/24" }
            let all = (0..<1_000).map { "10.\($0 / 256 + 100).\($0 % 256).0/24" }
            for (included, count) in [(even, 500), (all, 1_000), (even, 500)] {
                _ = try settings.apply(tunnelSettings(["10.8.0.2/24"], included: included), routing: RoutingOptions())
                let routes = lines(try output(of: "ip", "route", "show", "proto", "83"))
                #expect(routes.count == count)
            }
            #expect(settings.clear() == [])
            #expect(try SystemState() == before)
        }
    }

    @Test func whatOthersTakeAwayComesBack() throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                var channel = InProcessPrivilegedChannel(PrivilegedService(settingsPaths: settingsPaths(folder)))
                let device = try channel.openTUN(named: interfaceName("slt-change"), maximumTransmissionUnit: 1_500)
                try letTheKernelGiveAQueue(to: "slt-change")
                let before = try SystemState()
                _ = try channel.applySettings(
                    tunnelSettings(
                        ["10.8.0.2/24", "fd00:8::2/64"], included: Self.full + ["10.9.0.0/16"],
                        excluded: ["10.1.0.0/16"]),
                    routing: RoutingOptions(), to: device.identifier)
                let whole = try comparableState()
                #expect(try channel.restoreSettings(of: device.identifier) == 0)
                // As wg-quick does when another tunnel ends.
                try run("ip", "-4", "rule", "delete", "table", "main", "suppress_prefixlength", "0")
                try run("ip", "-6", "rule", "delete", "table", "main", "suppress_prefixlength", "0")
                // With it go the IPv4 routes and the IPv6 addresses.
                try run("ip", "link", "set", "slt-change", "down")
                try run("ip", "link", "set", "slt-change", "up")
                #expect(try channel.restoreSettings(of: device.identifier) > 3)
                #expect(try comparableState() == whole)
                #expect(try channel.clearSettings(of: device.identifier) == [])
                #expect(try SystemState() == before)
            }
        }
    }
}
