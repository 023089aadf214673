import FoundationEssentials
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct PrivilegedMessageTests {
    @Test func everyRequestSurvivesTheWay() throws {
        let requests: [PrivilegedRequest] = [
            .openTUN(
                name: interfaceName("wg0"), maximumTransmissionUnit: 1_420,
                options: TUNOptions(wantsOffloads: true, transmitQueueLength: 100, queues: 2)),
            .adoptTUN(descriptor: 3, wantsOffloads: true), .closeTUN(DeviceIdentifier(rawValue: 1)),
            .openUDPSockets(port: 51_820, mark: .max, wantsTrains: true, count: 2),
            .setMark([SocketIdentifier(rawValue: 2), SocketIdentifier(rawValue: 3)], mark: 0),
            .closeUDPSockets([SocketIdentifier(rawValue: 2)]), .openControlSocket(interfaceName("wg0")),
            .adoptControlSocket(descriptor: 4), .removeControlSocket(ControlSocketIdentifier(rawValue: 5)),
            .applySettings(
                DeviceIdentifier(rawValue: 1),
                NetworkSettingsMessage(
                    try tunnelSettings(
                        ["10.8.0.2/24", "fd00:8::2/64"], included: ["::/0"], excluded: ["fd00::/8"], mtu: 1_400,
                        dns: DNSSettings(servers: [address("10.8.0.1")], matchDomains: ["corp.example"]))),
                routing: RoutingOptions(table: .number(7), firewallMark: 9, endpoints: [address("192.0.2.1")])),
            .clearSettings(DeviceIdentifier(rawValue: 1)), .restoreSettings(DeviceIdentifier(rawValue: 1)),
            .setResolver([TextCoded(address("127.0.0.1"))], searchDomains: ["a.example"], link: interfaceName("wg0")),
            .setResolver([], searchDomains: [], link: nil), .clearResolver, .clearLeftovers,
            .openLinkNotices, .openNetlink(namespaceOf: nil), .openNetlink(namespaceOf: DeviceIdentifier(rawValue: 1)),
        ]
        for request in requests {
            try expectSurvival(of: request)
        }
    }

    @Test func everyReplySurvivesTheWay() throws {
        let replies: [PrivilegedReply] = [
            .done,
            .device(DeviceIdentifier(rawValue: 1), name: interfaceName("wg0"), headerLength: 10, offloads: .all),
            .sockets(
                [
                    SocketIdentifierPair(v4: SocketIdentifier(rawValue: 1), v6: nil),
                    SocketIdentifierPair(v4: nil, v6: SocketIdentifier(rawValue: 2)),
                ], port: 51_820, receivesTrains: true),
            .controlSocket(ControlSocketIdentifier(rawValue: 1), folder: "/run", file: "wg0.sock"),
            .settings(
                AppliedSettings(
                    firewallMark: 51_820, table: 51_820, maximumTransmissionUnit: 1_420, notes: [.leftoversRemoved])),
            .settingsCleared([.resolverFileChangedByOthers, .notUndone(.sourceValidMark, errno: 1)]),
            .settingsRestored(3), .failed(.settings(.refused(.add, .linkUp, errno: 17))),
            .resolver(.resolvconf, [.leftoversRemoved]), .failed(.settings(.resolverInUse)),
            .netlink(isHome: false), .failed(.systemCall(SystemCallError("bind", errno: 98))),
            .failed(.controlSocketInUse), .failed(.unknownIdentifier), .failed(.unsuitableDescriptor),
        ]
        for reply in replies {
            try expectSurvival(of: reply)
        }
    }

    @Test func settingsSurviveTheWayButForProxies() throws {
        var settings = try tunnelSettings(
            ["10.8.0.2/24"], included: ["0.0.0.0/0"], excluded: ["10.0.0.0/8"],
            dns: DNSSettings(
                servers: [address("fd00::53")], searchDomains: ["a.example"], domainName: "b.example",
                matchDomains: ["", "c.example"], matchDomainsNoSearch: true))
        settings.tunnelRemoteAddress = address("192.0.2.1")
        settings.tunnelOverheadBytes = 60
        let line = try JSONLine.encode(NetworkSettingsMessage(settings))
        #expect(try JSONLine.decode(NetworkSettingsMessage.self, from: line).settings == settings)
    }

    @Test func anImpossibleNameIsRefusedByTheReceiver() throws {
        let line = Array(#"{"openControlSocket":{"_0":"../wg0"}}"#.utf8)
        #expect(throws: JSONLineError.notDecodable(at: "openControlSocket._0")) {
            try JSONLine.decode(PrivilegedRequest.self, from: line)
        }
        let good = Array(#"{"openControlSocket":{"_0":"wg0"}}"#.utf8)
        #expect(try JSONLine.decode(PrivilegedRequest.self, from: good) == .openControlSocket(interfaceName("wg0")))
    }

    /// Our lines are what Foundation reads, and the other way round.
    private func expectSurvival<Message: Codable & Equatable>(of message: Message) throws {
        let line = try JSONLine.encode(message)
        #expect(!line.contains(UInt8(ascii: "\n")))
        #expect(try JSONLine.decode(Message.self, from: line) == message)
        #expect(try JSONDecoder().decode(Message.self, from: Data(line)) == message)
        #expect(try JSONLine.decode(Message.self, from: Array(JSONEncoder().encode(message))) == message)
    }
}
