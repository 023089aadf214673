import Glibc
import IPPacket
import Provider
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct MachineResolverTests {
    private func text(_ path: String) throws -> String { String(decoding: try WholeFile.read(path), as: UTF8.self) }

    /// A privileged side in a network namespace of its own, with paths in a temporary folder.
    private func withService(_ body: (inout InProcessPrivilegedChannel, SettingsPaths) throws -> Void) throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                let paths = settingsPaths(folder)
                var channel = InProcessPrivilegedChannel(PrivilegedService(settingsPaths: paths))
                try body(&channel, paths)
            }
        }
    }

    private func makeRecorder(_ name: String, _ paths: SettingsPaths, ending: String = "exit 0") throws {
        let folder = paths.programFolders[0]
        try run("mkdir", "-p", folder)
        try write(
            "#!/bin/sh\n{ echo \(name) \"$@\"; cat; } >> \(paths.stateFolder)-calls\n\(ending)\n",
            to: "\(folder)/\(name)")
        try run("chmod", "700", "\(folder)/\(name)")
    }

    private func calls(_ paths: SettingsPaths) throws -> [String] { lines(try text("\(paths.stateFolder)-calls")) }

    @Test func theFileKeepsItsOptionsAndIsTheSameAfterwards() throws {
        try withService { channel, paths in
            try write("search lan.example a.example\nnameserver 192.0.2.53\noptions edns0", to: paths.resolverFile)
            let before = try FileState(paths.resolverFile)
            let servers = [address("127.0.0.1"), address("::1")]
            let outcome = try channel.setResolver(servers, searchDomains: ["a.example", "-x"], link: nil)
            #expect(outcome.keeper == .file)
            #expect(outcome.notes == [])
            #expect(
                try text(paths.resolverFile) == """
                    # Written by sluice. What was here before comes back when it stops.
                    nameserver 127.0.0.1
                    nameserver ::1
                    search a.example lan.example
                    options edns0

                    """)
            // Another time: what was there first is what stays.
            _ = try channel.setResolver([address("127.0.0.9")], searchDomains: [], link: interfaceName("wg0"))
            #expect(
                try lines(text(paths.resolverFile)).dropFirst() == [
                    "nameserver 127.0.0.9", "search lan.example a.example", "options edns0",
                ])
            #expect(try channel.clearResolver() == [])
            #expect(try FileState(paths.resolverFile) == before)
            #expect(try output(of: "ls", paths.stateFolder) == "settings.lock\n")
            #expect(try channel.clearResolver() == [])
        }
    }

    @Test func theResolverIsPointedBackWhenTheServiceGoes() throws {
        try inTemporaryFolder { folder in
            let paths = settingsPaths(folder)
            try inNewNetworkNamespace {
                var channel = InProcessPrivilegedChannel(PrivilegedService(settingsPaths: paths))
                _ = try channel.setResolver([address("127.0.0.1")], searchDomains: [], link: nil)
                #expect(try text(paths.resolverFile).contains("nameserver 127.0.0.1\n"))
            }
            #expect(mode(of: paths.resolverFile) == nil)
        }
    }

    @Test func twoAtATimeCannotHaveIt() throws {
        try withService { channel, paths in
            _ = try channel.setResolver([address("127.0.0.1")], searchDomains: [], link: nil)
            var other = InProcessPrivilegedChannel(PrivilegedService(settingsPaths: paths))
            #expect(throws: PrivilegedFailure.settings(.resolverInUse)) {
                _ = try other.setResolver([address("127.0.0.2")], searchDomains: [], link: nil)
            }
            #expect(try other.clearLeftovers() == [])
            #expect(try text(paths.resolverFile).contains("nameserver 127.0.0.1\n"))
        }
    }

    @Test func aFileThatCannotBeWrittenLeavesNothingBehind() throws {
        try withService { channel, paths in
            // Nobody can write a folder, or put one aside.
            try run("mkdir", paths.resolverFile)
            let error = #expect(throws: PrivilegedFailure.self) {
                _ = try channel.setResolver([address("127.0.0.1")], searchDomains: [], link: nil)
            }
            #expect(error?.publicDescription == "cannot set the resolvers: Is a directory")
            #expect(try output(of: "ls", paths.stateFolder) == "settings.lock\n")
        }
    }

    @Test func resolvconfIsToldOfAResolverOnTheMachine() throws {
        try withService { channel, paths in
            try makeRecorder("resolvconf", paths)
            try write("lo.inet*\nlo*\ntun*\n", to: paths.resolvconfOrder)
            let outcome = try channel.setResolver(
                [address("127.0.0.1")], searchDomains: ["corp.example"], link: interfaceName("wg0"))
            #expect(outcome.keeper == .resolvconf)
            #expect(try channel.clearResolver() == [])
            #expect(
                try calls(paths) == [
                    "resolvconf -a lo.sluice -m 0 -x", "nameserver 127.0.0.1", "search corp.example",
                    "resolvconf -d lo.sluice -f",
                ])
        }
    }

    @Test func resolvedIsToldByTheTunnelsLinkOrByADeviceThatIsMadeForIt() throws {
        try withService { channel, paths in
            try makeRecorder("resolvectl", paths)
            try write("", to: paths.resolvedSocket)
            try run("ln", "-s", "/run/systemd/resolve/stub-resolv.conf", paths.resolverFile)
            let before = try SystemState()
            let outcome = try channel.setResolver([address("127.0.0.1")], searchDomains: [], link: nil)
            #expect(outcome.keeper == .resolved)
            #expect(try output(of: "ip", "-o", "-4", "address", "show", "dev", "sluice-dns").contains("192.0.0.8/32"))
            #expect(try output(of: "ip", "link", "show", "dev", "sluice-dns").contains("LOWER_UP"))
            #expect(try channel.clearResolver() == [])
            try awaitState(before)
            try run("ip", "tuntap", "add", "slt-link", "mode", "tun")
            let withLink = try SystemState()
            _ = try channel.setResolver([address("::1")], searchDomains: ["b.example"], link: interfaceName("slt-link"))
            #expect(try SystemState() == withLink)
            #expect(try channel.clearResolver() == [])
            #expect(
                try calls(paths) == [
                    "resolvectl dns sluice-dns 127.0.0.1", "resolvectl domain sluice-dns ~.",
                    "resolvectl default-route sluice-dns yes", "resolvectl revert sluice-dns",
                    "resolvectl dns slt-link ::1", "resolvectl domain slt-link b.example ~.",
                    "resolvectl default-route slt-link yes", "resolvectl revert slt-link",
                ])
        }
    }

    @Test func resolvedThatRefusesLeavesNoDevice() throws {
        try withService { channel, paths in
            try makeRecorder("resolvectl", paths, ending: "echo not today >&2; exit 1")
            try write("", to: paths.resolvedSocket)
            try run("ln", "-s", "../run/systemd/resolve/resolv.conf", paths.resolverFile)
            let before = try SystemState()
            #expect(throws: PrivilegedFailure.self) {
                _ = try channel.setResolver([address("127.0.0.1")], searchDomains: [], link: nil)
            }
            try awaitState(before)
        }
    }

    /// systemd-resolved takes its servers from such a file (systemd-resolved(8)): the domain `.` is for every name (resolv.conf of
    /// its own has it too).
    @Test func aFileThatResolvedReadsTakesEveryName() throws {
        try withService { channel, paths in
            try makeRecorder("resolvectl", paths)
            try write("", to: paths.resolvedSocket)
            try write("nameserver 192.0.2.53\n", to: paths.resolverFile)
            #expect(
                try channel.setResolver([address("127.0.0.1")], searchDomains: ["a.example"], link: nil).keeper == .file
            )
            #expect(try lines(text(paths.resolverFile)).last == "search a.example .")
        }
    }

    @Test(arguments: [
        ("", [], []), ("search a b\nsearch c", ["c"], []), ("domain a b", ["a"], []),
        (" search a\n#search b\n;search c", [], []),
        ("options x\n\toptions y\noptions  z\tw\r", [], ["options x"]), ("search\u{0}a\nsearch \u{e9}.example", [], []),
        (
            "search a\nsortlist 10.0.0.0/8\noptions ndots:2\nnameserver ::1", ["a"],
            ["sortlist 10.0.0.0/8", "options ndots:2"]
        ),
        ("search a\nsearch\n", [], []), ("searching a\noptional b", [], []),
    ])
    func aResolverFileIsReadAsTheCLibraryReadsIt(text: String, domains: [String], others: [String]) {
        let found = ResolverText(Array(text.utf8))
        #expect(found.searchDomains == domains)
        #expect(found.otherLines == others)
    }
}

/// Waits until the machine is as it was. A device goes with its last descriptor, which a child process that another test is starting
/// may have for a moment.
private func awaitState(_ state: SystemState) throws {
    try eventually("the machine as it was") { try SystemState() == state ? () : nil }
}
