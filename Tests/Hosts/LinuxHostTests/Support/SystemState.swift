import Glibc
import IPPacket
import Provider
import TestSupport
import Testing

@testable import LinuxHost

/// Runs `body` in a network namespace of its own, with a TUN device that has been up before and whose settings are kept in a
/// temporary folder.
func withTunnel<Result>(
    _ name: String, _ body: (borrowing TUNDevice, InterfaceSettings, SettingsPaths) throws -> Result
) throws -> Result {
    try inTemporaryFolder { folder in
        try inNewNetworkNamespace {
            let paths = settingsPaths(folder)
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let device = try channel.openTUN(named: interfaceName(name), maximumTransmissionUnit: 1_500)
            try letTheKernelGiveAQueue(to: name)
            return try body(device, try interfaceSettings(name, paths), paths)
        }
    }
}

/// What a command that ends with 0 writes to standard output, run in the calling thread's namespaces.
func output(of command: String...) throws -> String {
    try output(of: command)
}

/// The same for an array.
func output(of command: [String]) throws -> String {
    var ends: [Int32] = [0, 0]
    _ = try systemCall("pipe") { unsafe pipe(&ends) }
    let reading = FileDescriptor(adopting: ends[0])
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    unsafe posix_spawn_file_actions_addclose(&actions, ends[0])
    let arguments = CStringList(command)
    let variables = CStringList(["PATH=/usr/sbin:/usr/bin:/sbin:/bin"])
    var child: pid_t = 0
    let error = unsafe posix_spawnp(&child, command[0], &actions, nil, arguments.pointer, variables.pointer)
    close(ends[1])
    if error != 0 { throw CommandFailure(command: command, status: -error) }
    let bytes = try WholeFile.read(reading)
    var status: Int32 = 0
    _ = try systemCall("waitpid") { unsafe waitpid(child, &status, 0) }
    if status != 0 { throw CommandFailure(command: command, status: status) }
    return String(decoding: bytes, as: UTF8.self)
}

/// Everything that settings touch in the calling thread's network namespace, as the system's own programs print it.
struct SystemState: Equatable, CustomStringConvertible {
    var parts: [String]

    /// Looks until the kernel has finished with IPv6 addresses, which it makes routes for some time after it was given them.
    init() throws {
        parts = try eventually("the routes of IPv6 addresses") {
            let parts = try Self.listings()
            let addresses = lines(parts[0]).compactMap { line -> Substring? in
                let words = line.split(separator: " ")
                return words.first == "inet6" ? words[1].prefix { $0 != "/" } : nil
            }
            let isSettled =
                !parts[0].contains("tentative") && addresses.allSatisfy { parts[4].contains("local \($0) dev ") }
            return isSettled ? parts : nil
        }
    }

    private static func listings() throws -> [String] {
        [
            try output(of: "ip", "-d", "addr"), try output(of: "ip", "-d", "-4", "rule"),
            try output(of: "ip", "-d", "-6", "rule"),
            try output(of: "ip", "-d", "-4", "route", "show", "table", "all"),
            try output(of: "ip", "-d", "-6", "route", "show", "table", "all"),
            try output(of: "nft", "-s", "list", "ruleset"),
            try output(of: "sysctl", "net.ipv4.conf.all.src_valid_mark"),
        ]
    }

    var description: String { parts.joined(separator: "----\n") }
}

/// The lines of a text, without white space at their ends.
func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map { line in
        var line = line
        while line.last == " " { line.removeLast() }
        return String(line)
    }
}

/// Settings for an interface of the calling thread's namespace, with their records in `folder`.
func interfaceSettings(_ name: String, _ paths: SettingsPaths) throws -> InterfaceSettings {
    let service = PrivilegedService()
    let netlink = try NetlinkSocket(adopting: try service.netlinkQuestionSocket())
    return InterfaceSettings(of: interfaceName(name), netlink: netlink, paths: paths)
}

/// Paths in a folder of a test's own. No program is found there, and the resolver file is `resolv.conf` in it.
func settingsPaths(_ folder: String) -> SettingsPaths {
    SettingsPaths(
        stateFolder: "\(folder)/state", lastingFolder: "\(folder)/state", resolverFile: "\(folder)/resolv.conf",
        resolvedSocket: "\(folder)/resolved",
        resolvconfOrder: "\(folder)/interface-order", programFolders: ["\(folder)/programs"])
}

/// Settings from texts.
func tunnelSettings(
    _ addresses: [String], included: [String] = [], excluded: [String] = [], mtu: Int? = nil, dns: DNSSettings? = nil
) throws -> PacketTunnelNetworkSettings {
    PacketTunnelNetworkSettings(
        addresses: try addresses.map { try InterfaceAddress(parsing: $0) },
        includedRoutes: try included.map { try IPPrefix(parsing: $0) },
        excludedRoutes: try excluded.map { try IPPrefix(parsing: $0) }, mtu: mtu, dnsSettings: dns)
}

/// Takes a link up and down: with the first time it is up it gets a queue, which the kernel never takes away.
func letTheKernelGiveAQueue(to interface: String) throws {
    try run("ip", "link", "set", interface, "up")
    try run("ip", "link", "set", interface, "down")
}
