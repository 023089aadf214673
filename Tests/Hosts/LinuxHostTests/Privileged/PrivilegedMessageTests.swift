import FoundationEssentials
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
            .openLinkNotices, .openNetlink(namespaceOf: nil), .openNetlink(namespaceOf: DeviceIdentifier(rawValue: 1)),
        ]
        for request in requests {
            let data = try JSONEncoder().encode(request)
            #expect(try JSONDecoder().decode(PrivilegedRequest.self, from: data) == request)
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
            .netlink(isHome: false), .failed(.systemCall(SystemCallError("bind", errno: 98))),
            .failed(.controlSocketInUse), .failed(.unknownIdentifier), .failed(.unsuitableDescriptor),
        ]
        for reply in replies {
            let data = try JSONEncoder().encode(reply)
            #expect(try JSONDecoder().decode(PrivilegedReply.self, from: data) == reply)
        }
    }

    @Test func anImpossibleNameIsRefusedByTheReceiver() throws {
        let data = Data(#"{"openControlSocket":{"_0":"../wg0"}}"#.utf8)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(PrivilegedRequest.self, from: data) }
        let good = Data(#"{"openControlSocket":{"_0":"wg0"}}"#.utf8)
        #expect(
            try JSONDecoder().decode(PrivilegedRequest.self, from: good) == .openControlSocket(interfaceName("wg0")))
    }
}
