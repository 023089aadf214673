import Glibc
import IPPacket
import Provider
import TestSupport
import Testing

@testable import LinuxHost

/// What is left of a process that dies without a chance to clean up: its descriptors are closed, the rest stays.
@Suite struct LeftoverTests {
    /// Applies settings on a thread with descriptors of its own, which the kernel closes when it ends, and undoes nothing.
    private func applyAndDie(
        _ name: String, _ paths: SettingsPaths, _ value: PacketTunnelNetworkSettings, beforeDeath: () throws -> Void
    ) throws {
        try withoutActuallyEscaping(beforeDeath) { beforeDeath in
            let namespace = try openOwnNamespace()
            let path = path(of: namespace)
            try onThreadOfItsOwn {
                try beginWithoutDescriptors()
                let there = FileDescriptor(
                    adopting: try systemCall("open") { unsafe open(path, O_RDONLY | O_CLOEXEC) })
                try inNetworkNamespace(there) {
                    var channel = InProcessPrivilegedChannel(PrivilegedService())
                    let device = try channel.openTUN(named: interfaceName(name), maximumTransmissionUnit: 1_500)
                    let settings = try interfaceSettings(name, paths)
                    _ = try settings.apply(value, routing: RoutingOptions())
                    try beforeDeath()
                    // Whoever is killed runs no deinit: nobody gives this back.
                    _ = unsafe Unmanaged.passRetained(settings)
                    _ = device.identifier
                }
            }
        }
    }

    @Test func theNextInstanceRemovesThem() throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                let paths = settingsPaths(folder)
                try write("nameserver 192.0.2.53\n", to: paths.resolverFile)
                let before = try SystemState()
                let resolvers = try FileState(paths.resolverFile)
                try applyAndDie(
                    "slt-dead", paths,
                    tunnelSettings(
                        ["10.8.0.2/24", "fd00:8::2/64"], included: ["0.0.0.0/0", "::/0"], excluded: ["10.9.0.0/16"],
                        dns: DNSSettings(servers: [address("10.8.0.1")]))
                ) {
                    // One that lives is left alone.
                    try run("ip", "tuntap", "add", "slt-probe", "mode", "tun")
                    let living = try interfaceSettings("slt-probe", paths)
                    let applied = try living.apply(tunnelSettings(["10.5.0.2/24"]), routing: RoutingOptions())
                    #expect(applied.notes == [])
                    _ = living.clear()
                    try run("ip", "link", "delete", "slt-probe")
                }
                let left = try output(of: "ip", "rule")
                #expect(left.contains("lookup 51820"))
                #expect(try output(of: "nft", "list", "tables") == "table inet sluice-slt-dead\n")

                try run("ip", "tuntap", "add", "slt-next", "mode", "tun")
                let next = try interfaceSettings("slt-next", paths)
                let applied = try next.apply(tunnelSettings(["10.5.0.2/24"]), routing: RoutingOptions())
                #expect(applied.notes == [.leftoversRemoved])
                #expect(next.clear() == [])
                try run("ip", "link", "delete", "slt-next")
                #expect(try SystemState() == before)
                #expect(try FileState(paths.resolverFile) == resolvers)
            }
        }
    }

    @Test func theSameInterfaceCanBeMadeAgain() throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                let paths = settingsPaths(folder)
                let before = try SystemState()
                let value = try tunnelSettings(["10.8.0.2/24"], included: ["0.0.0.0/0"], excluded: ["10.9.0.0/16"])
                try applyAndDie("slt-again", paths, value) {}
                try run("ip", "tuntap", "add", "slt-again", "mode", "tun")
                let again = try interfaceSettings("slt-again", paths)
                let applied = try again.apply(value, routing: RoutingOptions())
                #expect(applied.notes == [.leftoversRemoved])
                #expect(applied.table == 51_820)
                #expect(again.clear() == [])
                try run("ip", "link", "delete", "slt-again")
                #expect(try SystemState() == before)
            }
        }
    }

    /// A record whose last line was cut short counts as the one before.
    @Test func aRecordCutShortIsTheOneBefore() throws {
        try inTemporaryFolder { folder in
            let record = SettingsRecord(interface: interfaceName("wg0"), index: 7, originalMTU: 1_500, wasUp: false)
            var later = record
            later.objects = [.linkUp]
            guard let file = try SettingsRecordFile(for: interfaceName("wg0"), in: folder) else {
                Issue.record("a new file is locked by somebody")
                return
            }
            #expect(file.read().record == nil)
            try file.write(record)
            try file.write(later)
            #expect(file.read().record == later)
            let name = try output(of: "ls", folder).dropLast()
            let size = try WholeFile.read("\(folder)/\(name)").count
            _ = try systemCall("truncate") { unsafe truncate("\(folder)/\(name)", size - 9) }
            #expect(file.read().record == record)
            try file.write(later)
            #expect(file.read().record == later)
            if let second = try SettingsRecordFile(for: interfaceName("wg0"), in: folder) {
                Issue.record("a file has two owners")
                _ = second.read()
            }
            file.remove()
            #expect(try output(of: "ls", folder) == "")
        }
    }

    /// What a later version may write: an object of a kind that nobody knows here. The others are undone.
    @Test func whatIsUnknownInARecordIsPassedOver() throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                let paths = settingsPaths(folder)
                let before = try SystemState()
                try applyAndDie(
                    "slt-dead", paths, try tunnelSettings(["10.8.0.2/24"], included: ["0.0.0.0/0"]), beforeDeath: {})
                let path = try recordPath(paths)
                let text = try readFile(path)
                let unknown = text.replacing("{\"linkUp\":{}}", with: "{\"gearUp\":{\"_0\":[1,2.5]}}")
                #expect(unknown != text)
                try writeFile(unknown, to: path, mode: 0o600)
                try run("ip", "tuntap", "add", "slt-next", "mode", "tun")
                let next = try interfaceSettings("slt-next", paths)
                let applied = try next.apply(tunnelSettings(["10.5.0.2/24"]), routing: RoutingOptions())
                #expect(applied.notes == [.leftoversUnreadable, .leftoversRemoved])
                #expect(next.clear() == [])
                try run("ip", "link", "delete", "slt-next")
                #expect(try SystemState() == before)
            }
        }
    }

    /// Nothing can be undone then, which is said, and the next instance comes up all the same.
    @Test(arguments: [
        #"{"interface":"slt-dead","index":7,"objects":[{"linkUp":{}}],"originalMTU":1500,"wasUp":false}"# + "\n",
        #"{"record":{"interface":"../etc","index":7,"originalMTU":1500,"wasUp":false},"objectCount":0}"# + "\n",
        #"{"record":{"interface":"slt-dead","index":-7,"originalMTU":1500,"wasUp":false},"objectCount":0}"# + "\n",
        #"{"record":{"interface":"slt-dead","index":7,"originalMTU":1500,"wasUp":false},"objectCount":1}"# + "\n",
        #"{"record":{"interface":"slt-dead","index":7,"originalMTU":1500,"wasUp":false},"objectCount":-1}"# + "\n",
        "\u{0}\u{1}\n\n", "{\n[[[[[", "\"\\ud800\"\n",
    ])
    func aRecordThatCannotBeReadIsTold(text: String) throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                let paths = settingsPaths(folder)
                try run("mkdir", "-p", paths.stateFolder)
                let path = "\(paths.stateFolder)/\(try SettingsRecordFile.prefix())slt-dead.settings"
                try writeFile(text, to: path, mode: 0o600)
                try run("ip", "tuntap", "add", "slt-next", "mode", "tun")
                let next = try interfaceSettings("slt-next", paths)
                let applied = try next.apply(tunnelSettings(["10.5.0.2/24"]), routing: RoutingOptions())
                #expect(applied.notes == [.leftoversUnreadable])
                #expect(mode(of: path) == nil)
                #expect(next.clear() == [])
            }
        }
    }

    /// Whoever dies between opening a record and writing it has done nothing.
    @Test func anEmptyRecordIsNotWorthAWord() throws {
        try inTemporaryFolder { folder in
            guard let file = try SettingsRecordFile(for: interfaceName("wg0"), in: folder) else {
                Issue.record("a new file is locked by somebody")
                return
            }
            let contents = file.read()
            #expect(contents.record == nil)
            #expect(!contents.isIncomplete)
        }
    }

    private func recordPath(_ paths: SettingsPaths) throws -> String {
        let names = try lines(output(of: "ls", paths.stateFolder)).filter { $0.hasSuffix(".settings") }
        return "\(paths.stateFolder)/\(try #require(names.first))"
    }
}
