import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct FullTunnelTests {
    @Test func everythingIsAsBeforeAfterwards() throws {
        try inTemporaryFolder { folder in
            try inNewNetworkNamespace {
                var channel = InProcessPrivilegedChannel(PrivilegedService(settingsPaths: settingsPaths(folder)))
                let device = try channel.openTUN(named: interfaceName("slt-full"), maximumTransmissionUnit: 1_500)
                try letTheKernelGiveAQueue(to: "slt-full")
                let before = try SystemState()
                let settings = try tunnelSettings(
                    ["10.8.0.2/24", "fd00:8::2/64"], included: ["0.0.0.0/0", "::/0"],
                    excluded: ["192.168.0.0/16", "fd00:9::/32"])
                let applied = try channel.applySettings(settings, routing: RoutingOptions(), to: device.identifier)
                #expect(applied.firewallMark == 51_820)
                let notes = try channel.clearSettings(of: device.identifier)
                #expect(notes.isEmpty)
                let after = try SystemState()
                #expect(after == before)
            }
        }
    }
}
