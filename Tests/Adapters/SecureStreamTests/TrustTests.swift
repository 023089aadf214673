import ByteAccess
import IPPacket
import SecureStream
import TestSupport
import Testing

/// Each server that must not be trusted is refused for the right reason, and gets no byte of the application.
@Suite struct TrustTests {
    private let certificates = Certificates.shared

    /// Connects, tries to send a query, and says what was wrong; nil when the query arrived.
    private func problem(
        _ policy: TrustPolicy, _ server: String, _ identity: ServerIdentity = .name("dns.example")
    ) throws -> CertificateProblem? {
        let context = try TLSClientContext(policy)
        var exchange = try Exchange(TLSClient(context, identity: identity), certificates.server(server))
        let query: [UInt8] = [0, 12, 1, 2, 3]
        do {
            try exchange.run()
            try exchange.client.write(query.span.octets)
            try exchange.run()
        } catch TLSError.untrusted(let problem) {
            expect(exchange.client.state == .failed)
            // Nothing gets through afterwards either.
            do {
                try exchange.client.write(query.span.octets)
                Issue.record("a byte was taken")
            } catch {
                #expect(error == .closed)
            }
            try? exchange.run()
            expect(exchange.received.isEmpty)
            return problem
        }
        expect(exchange.received == query)
        return nil
    }

    private func authority(_ pins: PublicKeyPins? = nil) -> TrustPolicy {
        .authorities(.file(certificates.path("authority.pem")), pins: pins)
    }

    @Test(
        arguments: [
            ("good", nil), ("below", nil), ("other", .wrongName), ("expired", .expired), ("early", .notYetValid),
            ("alone", .selfSigned), ("foreign", .unknownAuthority), ("appended", .unknownAuthority),
            ("client", .wrongPurpose), ("dns.example", .wrongName),
        ] as [(String, CertificateProblem?)])
    func `an authority has to vouch for the name, now`(_ server: String, _ expected: CertificateProblem?) throws {
        #expect(try problem(authority(), server) == expected)
    }

    @Test func `names and addresses have to be in the certificate`() throws {
        #expect(try problem(authority(), "good", .name("DNS.Example")) == nil)
        #expect(try problem(authority(), "good", .name("example")) == .wrongName)
        #expect(try problem(authority(), "good", .name("sub.dns.example")) == .wrongName)
        #expect(try problem(authority(), "good", .address(.v4(IPv4Address(192, 0, 2, 1)))) == nil)
        #expect(try problem(authority(), "good", .address(.v4(IPv4Address(192, 0, 2, 2)))) == .wrongAddress)
        #expect(try problem(authority(), "other", .address(.v4(IPv4Address(192, 0, 2, 1)))) == .wrongAddress)
    }

    @Test func `a certificate of our own is not one of the system's authorities`() throws {
        #expect(try problem(.authorities(.system), "good") == .unknownAuthority)
    }

    @Test func `with an authority, any key of the verified chain may be pinned`() throws {
        #expect(try problem(authority(try certificates.pins("good")), "good") == nil)
        #expect(try problem(authority(try certificates.pins("other")), "good") == .pinMismatch)
        #expect(try problem(authority(try certificates.pins("other", "good")), "good") == nil)
        #expect(try problem(authority(try certificates.pins("intermediate")), "below") == nil)
        // A pin replaces no authority and no name.
        #expect(try problem(authority(try certificates.pins("foreign")), "foreign") == .unknownAuthority)
        #expect(try problem(authority(try certificates.pins("other")), "other") == .wrongName)
    }

    @Test func `with pins alone, the leaf's key or that of an issuer that signed it counts`() throws {
        #expect(try problem(.pinsOnly(try certificates.pins("alone")), "alone") == nil)
        #expect(try problem(.pinsOnly(try certificates.pins("expired")), "expired") == nil)
        #expect(try problem(.pinsOnly(try certificates.pins("good")), "good", .name("any.example")) == nil)
        #expect(try problem(.pinsOnly(try certificates.pins("intermediate")), "below") == nil)
        #expect(try problem(.pinsOnly(try certificates.pins("good")), "alone") == .pinMismatch)
    }

    @Test func `a foreign leaf with the pinned certificate behind it is refused`() throws {
        #expect(try problem(.pinsOnly(try certificates.pins("good")), "appended") == .pinMismatch)
        #expect(try problem(.pinsOnly(try certificates.pins("intermediate")), "dressed") == .pinMismatch)
        #expect(try problem(authority(try certificates.pins("good")), "appended") == .unknownAuthority)
    }

    @Test(arguments: [
        "", "sha256/", "sha256/AAAA", "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=", "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-=",
    ])
    func `what is no pin is refused`(_ text: String) {
        #expect(PublicKeyPin(parsing: text) == nil)
    }

    @Test func `one pin is too few`() throws {
        let pin = try certificates.pin("good")
        #expect(PublicKeyPins([pin]) == nil)
        #expect(PublicKeyPins([pin, pin]) == nil)
        #expect(PublicKeyPins([pin, try certificates.pin("other")]) != nil)
    }
}
