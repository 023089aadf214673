import CLinux
import Glibc
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct StatusClientTests {
    /// A client and the other end of its connection, from which answers can be there before the question.
    private func withClient(
        _ answers: String, _ body: (inout StatusClient, borrowing FileDescriptor) throws -> Void
    ) throws {
        try inTemporaryFolder { folder in
            let listener = try listenUNIX("\(folder)/control.sock")
            var client = try StatusClient(path: "\(folder)/control.sock")
            let number = listener.rawValue
            let accepted = FileDescriptor(adopting: try systemCall("accept") { accept(number, nil, nil) })
            try WholeFile.write(Array(answers.utf8), to: accepted)
            try body(&client, accepted)
        }
    }

    private func request(_ socket: borrowing FileDescriptor) throws -> String {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let number = socket.rawValue
        let count = try systemCall("read") { unsafe read(number, &bytes, bytes.count) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    @Test func asksAndReadsOneAnswerAfterTheOther() throws {
        let names = (0..<2_000).map { "\"10.0.\($0 / 256).\($0 % 256)/32\"" }.joined(separator: ",")
        let long = #"{"revision":8,"settings":{"addresses":["# + names + "]}}"
        try withClient("{\"revision\":7}\n\(long)\n") { client, socket in
            let first = try client.status()
            #expect(first.revision == 7)
            #expect(first.json == #"{"revision":7}"#)
            #expect(try request(socket) == "{\"status\":{}}\n")
            let second = try client.status(after: 7)
            #expect(second.revision == 8)
            #expect(second.json == long)
            #expect(try request(socket) == "{\"status\":{\"after\":7,\"timeLimitSeconds\":60}}\n")
        }
    }

    @Test(arguments: [
        ("{\"error\":\"not now\"}\n", StatusFailure.refused("not now")), ("[]\n", .notUnderstood),
        ("\n", .notUnderstood),
        ("{}\n", .notUnderstood), ("{\"revision\":-1}\n", .notUnderstood), ("{\"revision\":\"1\"}\n", .notUnderstood),
        ("{\"revision\":\n", .notUnderstood),
    ])
    func anAnswerThatIsNoStatus(answer: String, failure: StatusFailure) throws {
        try withClient(answer) { client, _ in
            do throws(StatusFailure) {
                _ = try client.status()
                Issue.record("an answer that is none")
            } catch { #expect(error == failure) }
        }
    }

    @Test func aConnectionThatEndsBeforeTheAnswer() throws {
        try withClient("{\"revision\":") { client, socket in
            _ = shutdown(socket.rawValue, Int32(SHUT_WR))
            do throws(StatusFailure) {
                _ = try client.status()
                Issue.record("half an answer")
            } catch { #expect(error == .connectionLost) }
        }
    }

    @Test func nobodyThere() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/control.sock"
            #expect(throws: StatusFailure.notRunning(path: path, errno: ENOENT)) { _ = try StatusClient(path: path) }
            do { _ = try listenUNIX(path) }
            #expect(throws: StatusFailure.notRunning(path: path, errno: ECONNREFUSED)) {
                _ = try StatusClient(path: path)
            }
            let long = "/" + String(repeating: "x", count: 200)
            #expect(throws: StatusFailure.notRunning(path: long, errno: ENAMETOOLONG)) {
                _ = try StatusClient(path: long)
            }
        }
    }

    @Test func peopleReadItAsWGShowsIt() throws {
        let report = try StatusReport(
            line: #"""
                {"revision":3,"status":"connected","reason":null,"asleep":true,"interface":"wg0","mtu":1420,"listenPort":51820,
                "firewallMark":51820,"table":51820,"workers":2,"settings":{"addresses":["10.8.0.2/24"],"includedRoutes":[],
                "excludedRoutes":["10.9.0.0/16"],"dnsServers":["10.8.0.1","fd00::1"],"searchDomains":[]},
                "offloads":{"tun":{"tcp":"on","udp":"off","write":"on"},"udpSegment":{"ipv4":"on","ipv6":"on",
                "restrictedDestinations":2},"udpGRO":"on"},"drops":{"noPeer":4},"peers":[
                {"publicKey":"AAAA","endpoint":"192.0.2.1:7","endpointName":"vpn.example:7","allowedIPs":["0.0.0.0/0"],
                "lastHandshakeSeconds":90,"receivedBytes":5,"sentBytes":6,"persistentKeepaliveSeconds":25,"handshake":"completed"},
                {"publicKey":"BBBB","endpointName":"b.example:1","handshake":"given up"}]}
                """#)
        #expect(
            report.text(now: 100) == """
                interface: wg0
                  status: connected, asleep
                  addresses: 10.8.0.2/24
                  routes kept out: 10.9.0.0/16
                  resolvers: 10.8.0.1, fd00::1
                  mtu: 1420
                  listening port: 51820
                  fwmark: 0xca6c
                  routing table: 51820
                  offloads: tun off, udpSegment on (not to 2 destinations), udpGRO on
                  threads: 2
                  dropped: noPeer 4

                peer: AAAA
                  endpoint: 192.0.2.1:7 (vpn.example:7)
                  allowed ips: 0.0.0.0/0
                  latest handshake: 10 seconds ago
                  transfer: 5 bytes received, 6 bytes sent
                  persistent keepalive: every 25 seconds

                peer: BBBB
                  endpoint: b.example:1
                  handshake: nobody answers
                  transfer: 0 bytes received, 0 bytes sent

                """)
        // A clock that was set back makes no age negative.
        #expect(report.text(now: 10).contains("latest handshake: 0 seconds ago"))
    }

    @Test func whatIsMissingOrOfAnotherKindIsLeftOut() throws {
        let report = try StatusReport(
            line:
                #"{"revision":1,"interface":5,"mtu":"x","settings":[],"peers":{},"drops":3,"offloads":null,"workers":-1}"#
        )
        #expect(report.text(now: 0) == "interface: none\n  status: unknown\n")
    }
}
