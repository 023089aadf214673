import Glibc
import IPPacket
import Provider
import TestSupport
import Testing

@testable import LinuxHost

/// A step that the system really refuses: everything before it is taken back, and the error names the step.
@Suite struct FailedSettingsTests {
    private func full() throws -> PacketTunnelNetworkSettings {
        try tunnelSettings(
            ["10.8.0.2/24", "fd00:8::2/64", "10.8.1.2/24"], included: ["0.0.0.0/0", "::/0", "10.9.0.0/16"],
            excluded: ["192.168.0.0/16"])
    }

    private func check(
        _ settings: InterfaceSettings, _ value: PacketTunnelNetworkSettings,
        _ options: RoutingOptions = RoutingOptions(), fails text: String, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let before = try SystemState()
        let error = #expect(throws: InterfaceSettingsError.self, sourceLocation: location) {
            try settings.apply(value, routing: options)
        }
        #expect(error?.description == text, sourceLocation: location)
        #expect(try SystemState() == before, sourceLocation: location)
    }

    @Test func anImpossibleMTU() throws {
        try withTunnel("slt-fail") { _, settings, _ in
            var value = try full()
            value.mtu = 70_000
            try check(settings, value, fails: "cannot set the MTU 70000: Invalid argument")
        }
    }

    @Test func anAddressThatIsThereAlready() throws {
        try withTunnel("slt-fail") { _, settings, _ in
            try run("ip", "addr", "add", "10.8.1.2/24", "dev", "slt-fail")
            try check(settings, full(), fails: "cannot add the address 10.8.1.2/24: File exists")
        }
    }

    @Test func aRouteThatIsThereAlready() throws {
        try withTunnel("slt-fail") { _, settings, _ in
            try run("ip", "link", "add", "slt-other", "type", "veth")
            try run("ip", "link", "set", "slt-other", "up")
            try run("ip", "route", "add", "10.9.0.0/16", "dev", "slt-other")
            try check(settings, full(), fails: "cannot add the route 10.9.0.0/16: File exists")
        }
    }

    @Test func aRouteThatIsThereAlreadyInANumberedTable() throws {
        try withTunnel("slt-fail") { _, settings, _ in
            try run("ip", "-6", "route", "add", "unreachable", "default", "table", "99", "metric", "1024")
            try check(
                settings, full(), RoutingOptions(table: .number(99)),
                fails: "cannot add the route ::/0 in table 99: File exists")
        }
    }

    @Test func aRuleThatIsThereAlready() throws {
        try withTunnel("slt-fail") { _, settings, _ in
            try run("ip", "-6", "rule", "add", "pref", "28600", "fwmark", "0x55", "lookup", "main", "protocol", "83")
            try check(
                settings, full(), RoutingOptions(firewallMark: 0x55),
                fails: "cannot add the rule 28600: fwmark 0x55 lookup main: File exists")
        }
    }

    @Test func aFirewallThatCannotBeReached() throws {
        try onThreadOfItsOwn {
            try withTunnel("slt-fail") { _, settings, _ in
                let before = try SystemState()
                try onThreadOfItsOwn {
                    try refuseFirewallSockets()
                    let error = #expect(throws: InterfaceSettingsError.self) {
                        try settings.apply(self.full(), routing: RoutingOptions())
                    }
                    #expect(error?.description.hasPrefix("cannot add the firewall table sluice-slt-fail: ") == true)
                }
                #expect(try SystemState() == before)
            }
        }
    }

    @Test func aKernelSettingThatIsReadOnly() throws {
        try onThreadOfItsOwn {
            try leaveShared(.mounts)
            try run("mount", "--make-rprivate", "/")
            try run("mount", "--bind", "/proc/sys", "/proc/sys")
            try run("mount", "-o", "remount,bind,ro", "/proc/sys")
            try withTunnel("slt-fail") { _, settings, _ in
                let before = try SystemState()
                #expect(throws: InterfaceSettingsError.sourceValidMarkReadOnly) {
                    try settings.apply(self.full(), routing: RoutingOptions())
                }
                #expect(try SystemState() == before)
                // Where it is not needed nobody misses it.
                _ = try settings.apply(
                    tunnelSettings(["fd00:8::2/64"], included: ["::/0"]), routing: RoutingOptions())
                _ = settings.clear()
                #expect(try SystemState() == before)
            }
        }
    }

    @Test func aReadOnlyKernelSettingThatIsRightAlreadyIsNotWritten() throws {
        try onThreadOfItsOwn {
            try withTunnel("slt-fail") { _, settings, _ in
                try setKernelSetting("net/ipv4/conf/all/src_valid_mark", "1")
                try leaveShared(.mounts)
                try run("mount", "--make-rprivate", "/")
                try run("mount", "--bind", "/proc/sys", "/proc/sys")
                try run("mount", "-o", "remount,bind,ro", "/proc/sys")
                let before = try SystemState()
                _ = try settings.apply(self.full(), routing: RoutingOptions())
                #expect(settings.clear() == [])
                #expect(try SystemState() == before)
            }
        }
    }

    @Test func aResolverFileThatCannotBeWritten() throws {
        try withTunnel("slt-fail") { _, settings, paths in
            try run("mkdir", paths.resolverFile)
            var value = try full()
            value.dnsSettings = DNSSettings(servers: [address("10.8.0.1")])
            try check(settings, value, fails: "cannot set the resolvers: Is a directory")
        }
    }

    @Test func aFolderThatRecordsCannotBeKeptIn() throws {
        try inTemporaryFolder { folder in
            try withTunnel("slt-fail") { _, _, _ in
                try write("", to: "\(folder)/state")
                let settings = try interfaceSettings("slt-fail", settingsPaths(folder))
                try check(
                    settings, full(),
                    fails: "cannot keep the record to undo settings from: open: Not a directory (ENOTDIR)")
            }
        }
    }

    @Test func anInterfaceThatIsNotThere() throws {
        try withTunnel("slt-fail") { _, _, paths in
            try check(
                interfaceSettings("slt-absent", paths), full(), fails: "there is no such interface here")
        }
    }

    @Test func anInterfaceThatHasSettingsOfAnother() throws {
        try withTunnel("slt-fail") { _, settings, paths in
            _ = try settings.apply(full(), routing: RoutingOptions())
            try check(
                interfaceSettings("slt-fail", paths), full(), fails: "another process has settings on this interface")
            #expect(settings.clear() == [])
        }
    }

    @Test func afterAFailureTheSameSettingsCanBeApplied() throws {
        try withTunnel("slt-fail") { _, settings, _ in
            let before = try SystemState()
            try run("ip", "addr", "add", "10.8.1.2/24", "dev", "slt-fail")
            #expect(throws: InterfaceSettingsError.self) { try settings.apply(full(), routing: RoutingOptions()) }
            try run("ip", "addr", "del", "10.8.1.2/24", "dev", "slt-fail")
            _ = try settings.apply(full(), routing: RoutingOptions())
            _ = settings.clear()
            #expect(try SystemState() == before)
        }
    }

    @Test func aDeviceThatIsInAnotherNamespace() throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                var channel = InProcessPrivilegedChannel(PrivilegedService(settingsPaths: settingsPaths(folder)))
                let device = try channel.openTUN(named: interfaceName("slt-away"), maximumTransmissionUnit: 1_500)
                let other = try makeNetworkNamespace()
                try run("ip", "link", "set", "slt-away", "netns", path(of: other))
                // What has its name here now is somebody else's.
                try run("ip", "tuntap", "add", "slt-away", "mode", "tun")
                let before = try SystemState()
                let value = try full()
                #expect(throws: PrivilegedFailure.settings(.unknownInterface)) {
                    try channel.applySettings(value, routing: RoutingOptions(), to: device.identifier)
                }
                #expect(try SystemState() == before)
            }
        }
    }

    @Test func theFirewallLibraryDoesNotStayLoaded() throws {
        try withTunnel("slt-fail") { _, settings, _ in
            _ = try settings.apply(full(), routing: RoutingOptions())
            // Another test may have it loaded at this moment.
            try eventually("the end of the library") {
                let maps = String(decoding: try WholeFile.read("/proc/self/maps"), as: UTF8.self)
                return maps.contains("libnftables") ? nil : ()
            }
            _ = settings.clear()
        }
    }
}
