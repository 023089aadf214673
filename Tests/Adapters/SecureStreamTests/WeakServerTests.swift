import ByteAccess
import CLibSSL
import SecureStream
import TestSupport
import Testing

/// Servers that OpenSSL only plays when it is told to have no standards: made of libssl itself, without the module under test.
@Suite struct WeakServerTests {
    private let certificates = Certificates.shared

    /// A server of old versions, weak ciphers or weak certificates, between two memory buffers.
    @safe
    private struct LaxServer: ~Copyable {
        private let context: OpaquePointer
        private let stream: OpaquePointer
        private let incoming: OpaquePointer
        private let outgoing: OpaquePointer

        init(_ name: String, version: Int32 = TLS1_3_VERSION, ciphers: String = "ALL:@SECLEVEL=0") throws {
            let certificates = Certificates.shared
            // Every handle is checked before it is used; the stream takes the buffers over.
            guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { throw TLSError.unavailable }
            unsafe SSL_CTX_set_security_level(context, 0)
            guard unsafe clibssl_set_min_version(context, version) == 1,
                unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil) == 1,
                unsafe SSL_CTX_set_cipher_list(context, ciphers) == 1,
                unsafe SSL_CTX_use_certificate_chain_file(context, certificates.path("\(name).pem")) == 1,
                unsafe SSL_CTX_use_PrivateKey_file(context, certificates.path("\(name).key"), SSL_FILETYPE_PEM) == 1,
                let stream = unsafe SSL_new(context), let incoming = unsafe clibssl_new_memory(),
                let outgoing = unsafe clibssl_new_memory()
            else { throw TLSError.unreadableCertificate }
            unsafe SSL_set_bio(stream, incoming, outgoing)
            unsafe SSL_set_accept_state(stream)
            unsafe self.context = context
            unsafe self.stream = stream
            unsafe self.incoming = incoming
            unsafe self.outgoing = outgoing
        }

        deinit {
            unsafe SSL_free(stream)
            unsafe SSL_CTX_free(context)
        }

        /// Takes what the client sends and returns the answer.
        func answer(_ bytes: [UInt8]) -> [UInt8] {
            _ = unsafe BIO_write(incoming, bytes, Int32(bytes.count))
            _ = unsafe SSL_do_handshake(stream)
            var answer = [UInt8](repeating: 0, count: 20_000)
            let count = unsafe BIO_read(outgoing, &answer, Int32(answer.count))
            return Array(answer[..<max(0, Int(count))])
        }
    }

    /// Shakes hands; nil when the client was content.
    private func error(
        _ policy: TrustPolicy? = nil, _ server: borrowing LaxServer
    ) throws -> TLSError? {
        let context = try TLSClientContext(policy ?? .authorities(.file(certificates.path("authority.pem"))))
        var client = try TLSClient(context, identity: .name("dns.example"))
        do throws(TLSError) {
            while client.outgoingCount > 0 {
                var buffer = [UInt8](repeating: 0, count: 20_000)
                var span = buffer.mutableSpan
                var octets = span.mutableOctets
                let count = client.nextOutgoing(into: &octets)
                try client.receive(server.answer(Array(buffer[..<count])).span.octets)
            }
            expect(client.state == .established)
            return nil
        } catch {
            expect(client.state == .failed)
            return error
        }
    }

    @Test func `TLS 1.2 with forward secrecy is taken, 1.1 and key transport are not`() throws {
        #expect(try error(nil, LaxServer("good", version: TLS1_2_VERSION)) == nil)
        #expect(try error(nil, LaxServer("strong-rsa", version: TLS1_2_VERSION)) == nil)
        let old = try error(nil, LaxServer("good", version: TLS1_1_VERSION))
        let transport = try error(
            nil, LaxServer("strong-rsa", version: TLS1_2_VERSION, ciphers: "kRSA:@SECLEVEL=0"))
        for refusal in [old, transport] {
            guard case .protocolFailure = refusal else {
                Issue.record("taken or refused for another reason: \(String(describing: refusal))")
                continue
            }
        }
    }

    @Test(arguments: ["weak-rsa", "sha1"])
    func `short keys and signatures with SHA-1 are refused`(_ name: String) throws {
        #expect(try error(nil, LaxServer(name)) == .untrusted(.weak))
    }

    @Test func `a short key is refused although it is pinned`() throws {
        let policy = TrustPolicy.pinsOnly(try certificates.pins("weak-rsa"))
        let refusal = try error(policy, LaxServer("weak-rsa"))
        #expect(refusal != nil)
        #expect(try error(.pinsOnly(certificates.pins("strong-rsa")), LaxServer("strong-rsa")) == nil)
    }
}
