import ByteAccess
import CLinux
import Glibc
import IPPacket
import PacketTunnel
import Provider
import TestSupport
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct NameResolutionTests {
    /// The next outcomes.
    private func outcomes(_ resolution: NameResolution) throws -> [NameResolution.Outcome] {
        try awaitReady(resolution.wakeUp.descriptor.rawValue, "the end of a look-up")
        return resolution.takeOutcomes()
    }

    private func lookUp(_ host: String, port: UInt16 = 51_820) throws -> Result<[Endpoint], ResolutionFailure>? {
        let resolution = try NameResolution()
        resolution.start(EndpointName(host: host, port: port), id: 3, deadline: HostClock.now())
        let outcomes = try outcomes(resolution)
        #expect(outcomes.map(\.id) == [3])
        return outcomes.first?.result
    }

    @Test func addressesAreTakenAsTheyAre() throws {
        #expect(try lookUp("192.0.2.7") == .success([Endpoint(address: address("192.0.2.7"), port: 51_820)]))
        #expect(try lookUp("2001:db8::7", port: 1) == .success([Endpoint(address: address("2001:db8::7"), port: 1)]))
        #expect(
            try lookUp("fe80::7%lo") == .success([Endpoint(address: address("fe80::7"), port: 51_820, scope: 1)]))
    }

    @Test func aNameOfTheHostsFile() throws {
        let result = try lookUp("localhost", port: 9)
        let found = try #require(try result?.get())
        #expect(!found.isEmpty)
        for endpoint in found {
            #expect(endpoint.port == 9)
            #expect([address("127.0.0.1"), address("::1")].contains(endpoint.address))
        }
    }

    @Test func aNameThatCannotBeOne() throws {
        #expect(try lookUp("a..b") == .failure(.noSuchName))
        #expect(try lookUp(String(repeating: "x", count: 300)) == .failure(.noSuchName))
    }

    @Test func namesAreAskedOfTheResolver() throws {
        try withResolver { resolver in
            let resolution = try NameResolution()
            resolver.answers["vpn.example"] = .addresses(
                v4: [[192, 0, 2, 1]], v6: [[0x20, 0x01] + [UInt8](repeating: 0, count: 13) + [9]])
            resolver.answers["empty.example"] = .addresses(v4: [], v6: [])
            resolver.answers["broken.example"] = .failure
            for (id, host) in ["vpn.example", "empty.example", "gone.example", "broken.example"].enumerated() {
                // No time is left for another attempt.
                resolution.start(EndpointName(host: host, port: 7), id: UInt64(id), deadline: HostClock.now())
            }
            let results = try resolver.serve(resolution, count: 4)
            #expect(
                Set(try #require(try results[0]?.get())) == [
                    Endpoint(address: address("192.0.2.1"), port: 7), Endpoint(address: address("2001::9"), port: 7),
                ])
            #expect(results[1] == .failure(.noSuchName))
            #expect(results[2] == .failure(.noSuchName))
            #expect(results[3] == .failure(.temporaryFailure))
        }
    }

    @Test func aTemporaryFailureIsTriedAgainWhileThereIsTime() throws {
        try withResolver { resolver in
            let resolution = try NameResolution()
            resolver.answers["late.example"] = .failuresThenAddress(2, [192, 0, 2, 3])
            resolution.start(
                EndpointName(host: "late.example", port: 7), id: 1, deadline: HostClock.now() + .seconds(60))
            let results = try resolver.serve(resolution, count: 1)
            #expect(try results[1]?.get() == [Endpoint(address: address("192.0.2.3"), port: 7)])
            #expect(resolver.queryCount >= 4)
        }
    }

    @Test func nothingIsToldOfWhatWasCancelled() throws {
        try withResolver { resolver in
            let resolution = try NameResolution()
            resolution.start(
                EndpointName(host: "gone.example", port: 7), id: 1, deadline: HostClock.now() + .seconds(60))
            // It is under way.
            try awaitReady(resolver.descriptor.rawValue, "a query")
            resolution.cancel(1)
            // The thread ends with the library's answer.
            #expect(try resolver.serve(resolution, count: 0, untilWoken: true).isEmpty)
        }
    }

    @Test func thereIsALimit() throws {
        try withResolver { resolver in
            let resolution = try NameResolution()
            let limit = UInt64(NameResolution.limit)
            for id in 0...limit {
                resolution.start(
                    EndpointName(host: "gone.example", port: 7), id: id, deadline: HostClock.now() + .seconds(60))
            }
            // Nobody has answered yet: this one was not begun.
            let outcomes = try outcomes(resolution)
            #expect(outcomes.map(\.id) == [limit])
            #expect(outcomes.first?.result == .failure(.temporaryFailure))
            let results = try resolver.serve(resolution, count: NameResolution.limit)
            #expect(results.keys.sorted() == Array(0..<limit))
            #expect(results.values.allSatisfy { $0 == .failure(.noSuchName) })
            // There is room again.
            resolution.start(EndpointName(host: "192.0.2.1", port: 7), id: 500, deadline: HostClock.now())
            #expect(try resolver.serve(resolution, count: 1).keys.sorted() == [500])
        }
    }
}

/// Runs `body` where names are asked of a resolver of the test's own: in a network namespace, and with a resolver file, that
/// nobody else has.
private func withResolver(_ body: @escaping (ScriptedResolver) throws -> Void) throws {
    try inTemporaryFolder { folder in
        try writeFile("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n", to: "\(folder)/resolv.conf", mode: 0o644)
        try writeFile("hosts: files dns\n", to: "\(folder)/nsswitch.conf", mode: 0o644)
        try onThreadOfItsOwn {
            try leaveShared(.mounts)
            try run("mount", "--make-rprivate", "/")
            try run("mount", "--bind", "\(folder)/resolv.conf", "/etc/resolv.conf")
            try run("mount", "--bind", "\(folder)/nsswitch.conf", "/etc/nsswitch.conf")
            try inNewNetworkNamespace { try body(ScriptedResolver()) }
        }
    }
}

/// A name server (RFC 1035) that knows a few names, and of the others that there are none.
private final class ScriptedResolver {
    enum Answer {
        case addresses(v4: [[UInt8]], v6: [[UInt8]])
        case failure
        /// So many failures, then an IPv4 address.
        case failuresThenAddress(Int, [UInt8])
    }

    let descriptor: FileDescriptor
    var answers: [String: Answer] = [:]
    private(set) var queryCount = 0

    init() throws {
        descriptor = FileDescriptor(
            adopting: try systemCall("socket") {
                socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            })
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(53).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let number = descriptor.rawValue
        _ = try systemCall("bind") {
            unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }

    /// Answers queries until so many look-ups have ended, or the first sign of life.
    func serve(
        _ resolution: NameResolution, count: Int, untilWoken: Bool = false
    ) throws -> [UInt64: Result<[Endpoint], ResolutionFailure>] {
        var results: [UInt64: Result<[Endpoint], ResolutionFailure>] = [:]
        while untilWoken || results.count < count {
            var entries = [
                pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0),
                pollfd(fd: resolution.wakeUp.descriptor.rawValue, events: Int16(POLLIN), revents: 0),
            ]
            let ready = try systemCall("poll") { unsafe poll(&entries, 2, 10_000) }
            if ready == 0 { throw Impatience(awaited: "the end of a look-up") }
            while try answerOne() {}
            guard entries[1].revents != 0 else { continue }
            for outcome in resolution.takeOutcomes() { results[outcome.id] = outcome.result }
            if untilWoken { return results }
        }
        return results
    }

    private func answerOne() throws -> Bool {
        var query = [UInt8](repeating: 0, count: 512)
        var source = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let number = descriptor.rawValue
        let count = unsafe withUnsafeMutablePointer(to: &source) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe recvfrom(number, &query, query.count, 0, $0, &length)
            }
        }
        guard count > 12 else { return false }
        queryCount += 1
        let reply = reply(to: Array(query[..<count]))
        _ = try systemCall("sendto") {
            unsafe withUnsafePointer(to: &source) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe sendto(number, reply, reply.count, 0, $0, length)
                }
            }
        }
        return true
    }

    private func reply(to query: [UInt8]) -> [UInt8] {
        var labels: [String] = []
        var place = 12
        while query[place] != 0 {
            let length = Int(query[place])
            labels.append(String(decoding: query[place + 1..<place + 1 + length], as: UTF8.self))
            place += length + 1
        }
        let type = query[place + 2]
        let question = query[12..<place + 5]
        let name = labels.joined(separator: ".")
        var code: UInt8 = 0
        var addresses: [[UInt8]] = []
        switch answers[name] {
        case .none: code = 3
        case .failure: code = 2
        case .addresses(let v4, let v6): addresses = type == 28 ? v6 : v4
        case .failuresThenAddress(let failures, let address):
            if failures > 0 { code = 2 } else if type == 1 { addresses = [address] }
            answers[name] = .failuresThenAddress(max(failures - 1, 0), address)
        }
        var reply = Array(query[..<2]) + [0x81, 0x80 | code, 0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0] + question
        for address in addresses {
            // The name of the question, type, class, a time to live of a minute, the length.
            reply += [0xC0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, UInt8(address.count)] + address
        }
        return reply
    }
}
