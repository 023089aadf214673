import Glibc
import IPPacket
import Provider
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct FullTunnelTests {
    static let full = ["0.0.0.0/0", "::/0"]

    @Test(arguments: [
        (["10.8.0.2/24", "fd00:8::2/64"], full, ["192.168.0.0/16", "fd00:9::/32"], RoutingOptions()),
        (["10.8.0.2/32"], ["0.0.0.0/0"], [], RoutingOptions(firewallMark: 77)),
        (["fd00:8::2/128"], ["::/0"], [], RoutingOptions(routesDNSIntoTunnel: true)),
        (["10.8.0.2/24", "fd00:8::2/64"], ["10.9.0.0/16", "fd00:9::/32"], [], RoutingOptions()),
        (
            ["10.8.0.2/24", "fd00:8::2/64"], ["10.0.0.0/8", "fd00::/8"], ["10.1.0.0/16", "fd00:1::/32"],
            RoutingOptions()
        ),
        (["10.8.0.2/24", "fd00:8::2/64"], full, ["10.1.0.0/16"], RoutingOptions(table: .number(99))),
        (["10.8.0.2/24", "10.8.0.3/24"], full, [], RoutingOptions(table: .off)),
    ])
    func everythingIsAsBeforeAfterwards(
        addresses: [String], included: [String], excluded: [String], options: RoutingOptions
    ) throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                var channel = InProcessPrivilegedChannel(PrivilegedService(settingsPaths: settingsPaths(folder)))
                let device = try channel.openTUN(named: interfaceName("slt-full"), maximumTransmissionUnit: 1_500)
                try letTheKernelGiveAQueue(to: "slt-full")
                let before = try SystemState()
                let settings = try tunnelSettings(addresses, included: included, excluded: excluded)
                _ = try channel.applySettings(settings, routing: options, to: device.identifier)
                #expect(try SystemState() != before)
                let notes = try channel.clearSettings(of: device.identifier)
                #expect(notes.isEmpty)
                let after = try SystemState()
                #expect(after == before)
                // Only the lock that all share is left.
                #expect(try output(of: "ls", "\(folder)/state") == "settings.lock\n")
            }
        }
    }

    @Test func closingTheDeviceUndoesItsSettings() throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                let before = try SystemState()
                var channel = InProcessPrivilegedChannel(PrivilegedService(settingsPaths: settingsPaths(folder)))
                do {
                    let device = try channel.openTUN(named: interfaceName("slt-full"), maximumTransmissionUnit: 1_500)
                    _ = try channel.applySettings(
                        tunnelSettings(["10.8.0.2/24"], included: Self.full, excluded: ["10.9.0.0/16"]),
                        routing: RoutingOptions(), to: device.identifier)
                    try channel.closeTUN(device.identifier)
                }
                // A program that another test starts has the descriptor for a moment too.
                try eventually("the end of the device") { interfaceIndex("slt-full") == 0 ? () : nil }
                #expect(try SystemState() == before)
            }
        }
    }

    @Test func anInterfaceThatIsDeletedLeavesNothingBehind() throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                let before = try SystemState()
                let paths = settingsPaths(folder)
                try run("ip", "tuntap", "add", "slt-gone", "mode", "tun")
                let settings = try interfaceSettings("slt-gone", paths)
                _ = try settings.apply(
                    tunnelSettings(["10.8.0.2/24", "fd00:8::2/64"], included: Self.full, excluded: ["10.9.0.0/16"]),
                    routing: RoutingOptions())
                try run("ip", "link", "delete", "slt-gone")
                #expect(settings.clear() == [])
                #expect(try SystemState() == before)
            }
        }
    }

    /// wg-quick puts the same routes and rules, but for what we have beyond: the two rules for marked packets.
    @Test(arguments: [
        (["10.8.0.2/24", "fd00:8::2/64"], ["0.0.0.0/0", "::/0", "10.0.0.0/8"]),
        (["10.8.0.2/32"], ["10.8.0.0/24", "172.16.0.0/12", "fd00::/8"]), (["fd00:8::2/128"], ["::/0"]),
    ])
    func routesAndRulesAreThoseOfWGQuick(addresses: [String], included: [String]) throws {
        let theirs = try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                let configuration = """
                    [Interface]
                    PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=
                    Address = \(addresses.joined(separator: ", "))
                    [Peer]
                    PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=
                    AllowedIPs = \(included.joined(separator: ", "))
                    """
                // Its control socket is in a folder that all namespaces share.
                let name = "slt-\(folder.suffix(6))"
                try write(configuration, to: "\(folder)/\(name).conf")
                try quietly(["wg-quick", "up", "\(folder)/\(name).conf"])
                defer { try? quietly(["wg-quick", "down", "\(folder)/\(name).conf"]) }
                return try Self.routesAndRules(name)
            }
        }
        let ours = try withTunnel("slt-full") { device, settings, _ in
            _ = try settings.apply(tunnelSettings(addresses, included: included), routing: RoutingOptions())
            defer { _ = settings.clear() }
            return try Self.routesAndRules("slt-full")
        }
        #expect(ours == theirs)
    }

    /// Routes, rules, the firewall's first and last chain, and the MTU, in words that do not tell who put them there.
    private static func routesAndRules(_ interface: String) throws -> [String] {
        let listings = [
            try output(of: "ip", "-4", "rule"), try output(of: "ip", "-6", "rule"),
            try output(of: "ip", "-4", "route", "show", "table", "all"),
            try output(of: "ip", "-6", "route", "show", "table", "all"),
        ]
        var result = listings.flatMap(lines).filter {
            // Each interface makes up a link-local address; and rules for marked packets are ours alone.
            !$0.contains("fe80:") && !$0.hasPrefix("\(RoutingAllotment.markedPriority):")
        }
        result.sort()
        // For each family wg-quick has a table, in either order, with the same in it.
        var seen: Set<String> = []
        for line in lines(try output(of: "nft", "list", "ruleset")) {
            let rule = String(line.drop { $0 == "\t" }).replacing("iifname", with: "iif")
                .replacing("meta nfproto ipv4 ", with: "").replacing("meta nfproto ipv6 ", with: "")
            // A link-local address is nobody's who comes by another link.
            guard !rule.contains("fe80:"), rule.hasSuffix("drop") || rule.hasSuffix("ct mark set meta mark") else {
                continue
            }
            seen.insert(rule)
        }
        result += seen.sorted()
        let link = try output(of: "ip", "-o", "link", "show", interface).split(separator: " ").map(String.init)
        result.append(link[link.firstIndex(of: "mtu").map { $0 + 1 } ?? 0])
        result.append(try output(of: "sysctl", "net.ipv4.conf.all.src_valid_mark"))
        return result.map { $0.replacing(" proto 83", with: "").replacing(interface, with: "tunnel") }
    }
}

/// Writes a file that only we can read.
func write(_ text: String, to path: String) throws {
    let descriptor = FileDescriptor(
        adopting: try systemCall("open") { unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) })
    try WholeFile.write(Array(text.utf8), to: descriptor)
}

/// Runs a program without its output.
func quietly(_ command: [String]) throws {
    guard let program = ProgramRun.find(command[0], in: SettingsPaths().programFolders) else {
        throw CommandFailure(command: command, status: -ENOENT)
    }
    let outcome = try ProgramRun.run(program, Array(command.dropFirst()))
    if outcome.status != 0 { throw CommandFailure(command: command + [outcome.complaint], status: outcome.status) }
}
