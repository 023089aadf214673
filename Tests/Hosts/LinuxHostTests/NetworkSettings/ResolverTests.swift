import Glibc
import IPPacket
import Provider
import TestSupport
import Testing

@testable import LinuxHost

/// A file as the system shows it: what it is, whose, and what is in it.
struct FileState: Equatable {
    var listing: String
    var bytes: [UInt8]?

    init(_ path: String) throws {
        // Type and mode, number of links, owner, size, inode, time of the last change.
        listing = (try? output(of: "stat", "-c", "%A %h %u:%g %s %i %y %N", path)) ?? "missing"
        bytes = try? WholeFile.read(path)
    }
}

@Suite struct ResolverTests {
    private let resolvers = DNSSettings(
        servers: [address("10.8.0.1"), address("fd00:8::1")], searchDomains: ["a.example"], domainName: "b.example")

    private func value(
        _ resolvers: DNSSettings, included: [String] = ["0.0.0.0/0"]
    ) throws -> PacketTunnelNetworkSettings {
        try tunnelSettings(["10.8.0.2/24"], included: included, dns: resolvers)
    }

    private func text(_ path: String) throws -> String { String(decoding: try WholeFile.read(path), as: UTF8.self) }

    @Test func theFileIsTheSameFileAfterwards() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            // Bytes that no resolver understands come back too.
            try write("nameserver 192.0.2.53\n\u{0}\n# no end of line", to: paths.resolverFile)
            try run("chmod", "640", paths.resolverFile)
            try run("chown", "12:34", paths.resolverFile)
            try run("touch", "-d", "2001-02-03 04:05:06.789", paths.resolverFile)
            let before = try FileState(paths.resolverFile)
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            #expect(
                try text(paths.resolverFile)
                    == """
                    # Written by sluice. What was here before comes back when it stops.
                    nameserver 10.8.0.1
                    nameserver fd00:8::1
                    search b.example a.example

                    """)
            #expect(settings.clear() == [])
            #expect(try FileState(paths.resolverFile) == before)
        }
    }

    @Test func aLinkIsTheSameLinkAfterwardsAndItsTargetIsNeverWritten() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            let target = "\(paths.stateFolder)-target"
            try write("nameserver 127.0.0.53\n", to: target)
            try run("ln", "-s", target, paths.resolverFile)
            let before = try FileState(paths.resolverFile)
            let targetBefore = try FileState(target)
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            #expect(try text(paths.resolverFile).contains("nameserver 10.8.0.1\n"))
            #expect(try FileState(target) == targetBefore)
            #expect(settings.clear() == [])
            #expect(try FileState(paths.resolverFile) == before)
            #expect(try FileState(target) == targetBefore)
        }
    }

    @Test func aFileThatWasNotThereIsGoneAfterwards() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            #expect(try text(paths.resolverFile).contains("nameserver 10.8.0.1\n"))
            #expect(settings.clear() == [])
            #expect(mode(of: paths.resolverFile) == nil)
        }
    }

    @Test(arguments: [true, false])
    func whatSomebodyElseWroteSinceStays(isLink: Bool) throws {
        try withTunnel("slt-dns") { _, settings, paths in
            let file = isLink ? "\(paths.stateFolder)-target" : paths.resolverFile
            try write("nameserver 192.0.2.53\n", to: file)
            if isLink { try run("ln", "-s", file, paths.resolverFile) }
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            try write("nameserver 203.0.113.53\n", to: paths.resolverFile)
            #expect(settings.clear() == [.resolverFileChangedByOthers])
            #expect(try text(paths.resolverFile) == "nameserver 203.0.113.53\n")
            #expect(mode(of: "\(paths.resolverFile).before-sluice") == nil)
            // That is what the next one finds and brings back.
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            #expect(settings.clear() == [])
            #expect(try text(paths.resolverFile) == "nameserver 203.0.113.53\n")
        }
    }

    @Test func withoutResolversTheFileIsNotTouched() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            try write("nameserver 192.0.2.53\n", to: paths.resolverFile)
            let before = try FileState(paths.resolverFile)
            _ = try settings.apply(
                tunnelSettings(["10.8.0.2/24"], included: ["0.0.0.0/0"]), routing: RoutingOptions())
            #expect(try FileState(paths.resolverFile) == before)
            _ = try settings.apply(value(DNSSettings(servers: [])), routing: RoutingOptions())
            #expect(try FileState(paths.resolverFile) == before)
            _ = settings.clear()
        }
    }

    @Test(arguments: [true, false])
    func twoTunnelsShareTheFile(theFirstStopsFirst: Bool) throws {
        try withTunnel("slt-dns") { _, one, paths in
            try run("ip", "tuntap", "add", "slt-second", "mode", "tun")
            let two = try interfaceSettings("slt-second", paths)
            try write("nameserver 192.0.2.53\n", to: paths.resolverFile)
            let before = try FileState(paths.resolverFile)
            _ = try one.apply(value(resolvers), routing: RoutingOptions())
            _ = try two.apply(
                tunnelSettings(["10.7.0.2/24"], dns: DNSSettings(servers: [address("10.7.0.1")])),
                routing: RoutingOptions())
            #expect(try text(paths.resolverFile).contains("nameserver 10.7.0.1\n"))
            #expect((theFirstStopsFirst ? one : two).clear() == [])
            let left = theFirstStopsFirst ? "10.7.0.1" : "10.8.0.1"
            #expect(try text(paths.resolverFile).contains("nameserver \(left)\n"))
            #expect((theFirstStopsFirst ? two : one).clear() == [])
            #expect(try FileState(paths.resolverFile) == before)
        }
    }

    @Test func changedResolversReplaceTheOldOnes() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            try write("nameserver 192.0.2.53\n", to: paths.resolverFile)
            let before = try FileState(paths.resolverFile)
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            _ = try settings.apply(
                value(DNSSettings(servers: [address("10.8.0.9")])), routing: RoutingOptions())
            #expect(
                try lines(text(paths.resolverFile)).dropFirst() == ["nameserver 10.8.0.9"])
            _ = try settings.apply(
                tunnelSettings(["10.8.0.2/24"], included: ["0.0.0.0/0"]), routing: RoutingOptions())
            #expect(try FileState(paths.resolverFile) == before)
            _ = settings.clear()
        }
    }

    @Test func theFileCannotTellDomainsApartAndThatIsSaid() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            let split = DNSSettings(servers: [address("10.8.0.1")], matchDomains: ["corp.example"])
            let applied = try settings.apply(value(split, included: ["10.9.0.0/16"]), routing: RoutingOptions())
            #expect(applied.notes == [.resolversTakeEveryName])
            #expect(try text(paths.resolverFile).contains("search corp.example\n"))
            _ = settings.clear()
        }
    }

    /// wg-quick(8)'s `set_dns` and `unset_dns`: the arguments, the lines, and what goes before the name where Debian's resolvconf
    /// orders its records. A program in resolvconf's place writes down what it is called with.
    @Test func resolvconfIsCalledAsWGQuickCallsIt() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            try makeRecorder("resolvconf", paths)
            try write("lo.inet*\nlo*\ntun*\n", to: paths.resolvconfOrder)
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            #expect(
                try text("\(paths.stateFolder)-calls") == """
                    resolvconf -a lo.slt-dns -m 0 -x
                    nameserver 10.8.0.1
                    nameserver fd00:8::1
                    search b.example a.example

                    """)
            #expect(settings.clear() == [])
            #expect(try lines(text("\(paths.stateFolder)-calls")).last == "resolvconf -d lo.slt-dns -f")
            #expect(mode(of: paths.resolverFile) == nil)
        }
    }

    @Test func resolvedIsToldServersDomainsAndWhoseTheRestIs() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            try makeRecorder("resolvectl", paths)
            try makeRecorder("resolvconf", paths)
            try write("", to: paths.resolvedSocket)
            let split = DNSSettings(
                servers: [address("10.8.0.1")], searchDomains: ["a.example"], matchDomains: ["corp.example"],
                matchDomainsNoSearch: true)
            _ = try settings.apply(value(split, included: ["10.9.0.0/16"]), routing: RoutingOptions())
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            #expect(settings.clear() == [])
            #expect(
                try lines(text("\(paths.stateFolder)-calls")) == [
                    "resolvectl dns slt-dns 10.8.0.1", "resolvectl domain slt-dns a.example ~corp.example",
                    "resolvectl default-route slt-dns no", "resolvectl dns slt-dns 10.8.0.1 fd00:8::1",
                    "resolvectl domain slt-dns b.example a.example ~.", "resolvectl default-route slt-dns yes",
                    "resolvectl revert slt-dns",
                ])
        }
    }

    @Test func theResolvconfOfSystemdIsNotAskedWhileResolvedDoesNotRun() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            try makeRecorder("resolvectl", paths)
            try run("ln", "-s", "resolvectl", "\(paths.programFolders[0])/resolvconf")
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            #expect(try text(paths.resolverFile).contains("nameserver 10.8.0.1\n"))
            #expect(settings.clear() == [])
            #expect(mode(of: "\(paths.stateFolder)-calls") == nil)
        }
    }

    @Test func aProgramThatRefusesUndoesTheRest() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            let before = try SystemState()
            try makeRecorder("resolvconf", paths, ending: "echo not today >&2; exit 3")
            let error = #expect(throws: InterfaceSettingsError.self) {
                try settings.apply(value(resolvers), routing: RoutingOptions())
            }
            #expect(error?.description == "cannot set the resolvers: not today")
            #expect(try SystemState() == before)
        }
    }

    @Test func aProgramThatRefusesAChangeIsToldWhatWas() throws {
        try withTunnel("slt-dns") { _, settings, paths in
            try makeRecorder("resolvconf", paths, ending: "tail -n 1 \(paths.stateFolder)-calls | grep -qv 10.6.6.6")
            _ = try settings.apply(value(DNSSettings(servers: [address("10.8.0.1")])), routing: RoutingOptions())
            #expect(throws: InterfaceSettingsError.self) {
                try settings.apply(value(DNSSettings(servers: [address("10.6.6.6")])), routing: RoutingOptions())
            }
            #expect(try lines(text("\(paths.stateFolder)-calls")).last == "nameserver 10.8.0.1")
            _ = settings.clear()
        }
    }

    /// One that starts a daemon, which keeps the descriptors that it was given, and one that talks without end.
    @Test(arguments: ["sleep 60 & echo $! > FILE", "yes no >&2 & echo $! > FILE; head -c 200000 /dev/zero >&2; :"])
    func aProgramIsNotWaitedForLongerThanItRuns(script: String) throws {
        try inTemporaryFolder { folder in
            try write(
                "#!/bin/sh\n\(script.replacing("FILE", with: "\(folder)/pid"))\nexit 0\n", to: "\(folder)/program")
            try run("chmod", "700", "\(folder)/program")
            let outcome = try ProgramRun.run("\(folder)/program", [])
            #expect(outcome.status == 0)
            let child = try #require(pid_t(try lines(text("\(folder)/pid")).first ?? ""))
            // The one that talks may have given up by itself.
            #expect(kill(child, SIGKILL) == 0 || errno == ESRCH)
        }
    }

    @Test func whatIsNoDomainGetsNowhere() throws {
        let resolvers = DNSSettings(
            servers: [address("10.8.0.1")], searchDomains: ["a\nnameserver 6.6.6.6", "-x", "b c", "", "good.example"])
        let settings = ResolverSettings(try value(resolvers), of: interfaceName("wg0"))
        #expect(settings?.resolverLines == "nameserver 10.8.0.1\nsearch good.example\n")
    }

    /// Without the record nobody knows what was there first: it is not guessed.
    @Test(arguments: ["", "{\"original\":{\"missing\":{}},\"tunnels\":", "{\"was\":\"nothing\"}"])
    func aRecordThatCannotBeReadIsAFailureThatNamesIt(record: String) throws {
        try withTunnel("slt-dns") { _, settings, paths in
            try run("mkdir", "-p", paths.stateFolder)
            try write("nameserver 192.0.2.53\n", to: paths.resolverFile)
            try write(record, to: "\(paths.stateFolder)/resolver-file")
            let before = try FileState(paths.resolverFile)
            let error = #expect(throws: InterfaceSettingsError.self) {
                try settings.apply(value(resolvers), routing: RoutingOptions())
            }
            #expect(error?.description.contains("\(paths.stateFolder)/resolver-file") == true)
            #expect(try FileState(paths.resolverFile) == before)
            try run("rm", "\(paths.stateFolder)/resolver-file")
            _ = try settings.apply(value(resolvers), routing: RoutingOptions())
            #expect(settings.clear() == [])
            #expect(try text(paths.resolverFile) == "nameserver 192.0.2.53\n")
        }
    }

    private func makeRecorder(_ name: String, _ paths: SettingsPaths, ending: String = "exit 0") throws {
        let folder = paths.programFolders[0]
        try run("mkdir", "-p", folder)
        let calls = "\(paths.stateFolder)-calls"
        try write("#!/bin/sh\n{ echo \(name) \"$@\"; cat; } >> \(calls)\n\(ending)\n", to: "\(folder)/\(name)")
        try run("chmod", "700", "\(folder)/\(name)")
    }
}
