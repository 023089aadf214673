import TestSupport
import Testing

@testable import LinuxHost

/// `dns.secureListen`, with a certificate that `openssl` makes.
@Suite struct SecureListenTests {
    private func read(_ members: String, in folder: String) throws -> SecureListenConfiguration? {
        let text = """
            { dns: {
                listen: ["127.0.0.1:53"],
                secureListen: { \(members.replacing("FOLDER", with: folder)) },
                upstreams: [ { name: "main", url: "udp://192.0.2.1" } ] } }
            """
        try writeFile(text, to: "\(folder)/a.json5", mode: 0o644)
        return try LoadedConfiguration.read("\(folder)/a.json5").value.dns?.secureListen
    }

    private func withCertificates(_ body: (String) throws -> Void) throws {
        try inTemporaryFolder { folder in
            for name in ["own", "other"] {
                try run(
                    "sh", "-ec",
                    """
                    cd \(folder)
                    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout \(name).key -out \(name).pem \
                        -subj /CN=\(name) -days 2 2>log
                    chmod 600 \(name).key
                    """)
            }
            try body(folder)
        }
    }

    private static let files = "certificateFile: 'FOLDER/own.pem', keyFile: 'FOLDER/own.key'"

    @Test func everyKeyIsRead() throws {
        try withCertificates { folder in
            let listen = try #require(
                try read(
                    """
                    tls: ['0.0.0.0:853', '[::]:853'], https: ['127.0.0.1:8443'], path: '/x', maxHandshakes: 9,
                    maxHandshakesPerClient: 256, \(Self.files)
                    """, in: folder))
            #expect(listen.tls.map(\.description) == ["0.0.0.0:853", "[::]:853"])
            #expect(listen.https.map(\.description) == ["127.0.0.1:8443"])
            #expect(listen.path == "/x" && !listen.isKeyCredential)
            #expect(listen.certificateFile == "\(folder)/own.pem" && listen.keyFile == "\(folder)/own.key")
            #expect(listen.maximumHandshakes == 9 && listen.maximumHandshakesPerClient == 256)
            let usual = try #require(try read("https: ['127.0.0.1:443'], \(Self.files)", in: folder))
            #expect(usual.path == "/dns-query")
            #expect(usual.maximumHandshakes == 64 && usual.maximumHandshakesPerClient == 16)
        }
    }

    @Test func whatIsWrongIsToldWithItsLineAndKey() throws {
        try withCertificates { folder in
            try run("chmod", "640", "\(folder)/other.key")
            let cases = [
                ("tls: ['127.0.0.1:853']", ["certificateFile: missing", "keyFile: missing"]),
                (Self.files, ["certificateFile: is of use with tls or https only"]),
                (
                    "tls: ['127.0.0.1:853'], certificateFile: 'FOLDER/other.pem', keyFile: 'FOLDER/own.key'",
                    ["keyFile: FOLDER/own.key has the key of another certificate in it"]
                ),
                (
                    "tls: ['127.0.0.1:853'], certificateFile: 'FOLDER/other.pem', keyFile: 'FOLDER/other.key'",
                    [
                        "keyFile: FOLDER/other.key holds secrets and is open to others (mode 0640); chmod 600 closes it"
                    ]
                ),
                (
                    "tls: ['127.0.0.1:853'], certificateFile: 'FOLDER/own.key', keyFile: 'FOLDER/own.key'",
                    [
                        "certificateFile: FOLDER/own.key has no certificate in it; expected PEM, the server's own certificate first"
                    ]
                ),
                ("tls: ['127.0.0.1:53'], \(Self.files)", ["tls[0]: is listened at already"]),
                (
                    "tls: ['127.0.0.1:1'], https: ['127.0.0.1:1'], \(Self.files)",
                    ["https[0]: is listened at already"]
                ),
                ("tls: ['127.0.0.1:1'], path: '/x', \(Self.files)", ["path: is of use with https only"]),
                (
                    "tls: ['127.0.0.1:1'], maxHandshakes: 0, maxHandshakesPerClient: 257, \(Self.files)",
                    [
                        "maxHandshakes: expected a whole number from 1 to 256",
                        "maxHandshakesPerClient: expected a whole number from 1 to 256",
                    ]
                ),
                ("https: ['127.0.0.1:1'], path: 'x', \(Self.files)", ["path: expected a path such as /dns-query"]),
            ]
            for (members, expected) in cases {
                let errors = #expect(throws: ConfigurationErrors.self) { try read(members, in: folder) }
                #expect(
                    errors?.lines
                        == expected.map {
                            "\(folder)/a.json5:3: dns.secureListen.\($0.replacing("FOLDER", with: folder))"
                        })
            }
        }
    }
}
