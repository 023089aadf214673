import ByteAccess
import CLinux
import DNSProxy
import Glibc
import Provider
import SecureStream
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct ServerTrustTests {
    /// The server's end of a connection by TLS, which a test turns by hand.
    private struct Peer: ~Copyable {
        var stream: TLSServer
        let connection: LoopbackConnection
        /// What came as plaintext.
        var received: [UInt8] = []
        var isOver = false

        init(_ context: TLSServerContext, _ connection: consuming LoopbackConnection) throws {
            stream = try TLSServer(context)
            self.connection = connection
        }

        /// Moves what there is, both ways.
        mutating func turn() throws {
            guard let bytes = try connection.readSome() else {
                isOver = true
                return
            }
            if !bytes.isEmpty { try? stream.receive(bytes.span.octets) }
            try read()
            try flush()
        }

        mutating func write(_ plaintext: [UInt8]) throws {
            try stream.write(plaintext.span.octets)
            try flush()
        }

        private mutating func read() throws {
            guard stream.state == .established else { return }
            var buffer = [UInt8](repeating: 0, count: 16_384)
            while true {
                let result: TLSReadResult
                do {
                    var span = buffer.mutableSpan
                    var octets = span.mutableOctets
                    result = try stream.read(into: &octets)
                }
                guard case .bytes(let count) = result else { return }
                received += buffer[..<count]
            }
        }

        private mutating func flush() throws {
            while stream.outgoingCount > 0 {
                var buffer = [UInt8](repeating: 0, count: 16_384)
                let count: Int
                do {
                    var span = buffer.mutableSpan
                    var octets = span.mutableOctets
                    count = stream.nextOutgoing(into: &octets)
                }
                _ = try? connection.write(Array(buffer[..<count]))
            }
        }
    }

    /// Makes an authority, and a certificate of it for `dns.example`, in a folder.
    private func makeCertificates(in folder: String) throws {
        try run(
            "sh", "-ec",
            """
            cd \(folder)
            exec >log 2>&1
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout authority.key -out authority.pem \
                -subj /CN=authority -days 30
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=server
            printf "subjectAltName=DNS:dns.example\\n" > names
            openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 30 \
                -extfile names -out server.pem
            """)
    }

    private func server(_ folder: String) throws -> TLSServerContext {
        try TLSServerContext(
            certificateFile: "\(folder)/server.pem", keyFile: "\(folder)/server.key", protocols: ["dot"])
    }

    @Test func `a server that an authority vouches for is asked, in padded queries`() throws {
        try inTemporaryFolder { folder in
            try makeCertificates(in: folder)
            let listener = try LoopbackServer(SOCK_STREAM)
            var upstream = upstream(.tls, "dns.example", listener.port, addresses: ["127.0.0.1"])
            upstream.trust.authorityFile = "\(folder)/authority.pem"
            var driver = try ServerDriver([upstream])
            let first = driver.ask("a.example", by: .tls)
            driver.ask("b.example", by: .tls)
            var peer = try Peer(server(folder), listener.accept())
            try driver.run("two queries") { _ in
                try peer.turn()
                return framedMessages(in: peer.received).count == 2
            }
            // Nothing of the query's own has an OPT record to pad: they are as they were but for the ID.
            let queries = framedMessages(in: peer.received)
            #expect(queries[0].dropFirst(2) == driver.client.queries[first]?.dropFirst(2))
            try peer.write(queries.flatMap { framed(wireAnswer(to: $0)) })
            try driver.run("two answers") { $0.endedCount == 2 }
            #expect(driver.client.failures.isEmpty && driver.servers.status[0].trustProblem == nil)
        }
    }

    @Test func `a server that nobody vouches for gets no byte of a query, and is named in the log once`() throws {
        try inTemporaryFolder { folder in
            try makeCertificates(in: folder)
            let listener = try LoopbackServer(SOCK_STREAM)
            let upstream = upstream(.tls, "dns.example", listener.port, addresses: ["127.0.0.1"])
            let path = "\(folder)/lines"
            let log = FileDescriptor(
                adopting: try systemCall("open") { unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) })
            var driver = try ServerDriver(
                [upstream], log: Log(level: .error, name: "test", descriptorNumber: log.rawValue))
            for number in 1...2 {
                let id = driver.ask("secret.example", by: .tls)
                if number == 1 {
                    var peer = try Peer(server(folder), listener.accept())
                    try driver.run("the failure") { client in
                        if !peer.isOver { try peer.turn() }
                        return client.endedCount == 1
                    }
                    #expect(peer.received.isEmpty)
                }
                // Its only address is left alone for a while: the second query fails at once.
                #expect(driver.client.failures[id] == [.untrusted])
            }
            #expect(driver.servers.status[0].trustProblem == .unknownAuthority)
            let lines = try String(decoding: readAll(path), as: UTF8.self)
            #expect(lines.split(separator: "\n").count == 1)
            #expect(lines.contains("the upstream main is not trusted") && !lines.contains("secret"))
        }
    }

    @Test func `authorities that cannot be read stop the start, and pins have to be two`() throws {
        var upstream = upstream(.tls, "dns.example", 853, addresses: ["127.0.0.1"])
        upstream.trust.authorityFile = "/nonexistent"
        #expect(throws: ServerStartError(upstream: "main", reason: .unreadableAuthorities)) {
            _ = try StreamProtocol(upstream)
        }
        upstream.trust = TLSTrust()
        upstream.trust.isPinOnly = true
        #expect(throws: ServerStartError(upstream: "main", reason: .tooFewPins)) { _ = try StreamProtocol(upstream) }
    }

    private func readAll(_ path: String) throws -> [UInt8] {
        let file = FileDescriptor(adopting: try systemCall("open") { unsafe open(path, O_RDONLY) })
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = try systemCall("read") { unsafe read(file.rawValue, &buffer, buffer.count) }
        return Array(buffer[..<count])
    }
}
