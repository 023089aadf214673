import ByteAccess
import CLibSSL
import SecureStream
import TestSupport
import Testing

/// What clients may send before the handshake is done, and instead of data behind it.
@Suite struct HandshakeBoundTests {
    /// A record of a handshake with a ClientHello that says to have 131,071 bytes, and nothing of it.
    private static let greedy: [UInt8] = [22, 3, 3, 0x40, 0, 1, 1, 0xFF, 0xFF, 3, 3]

    private func server() throws -> TLSServerContext { try Certificates.shared.server("good") }

    /// Gives a server bytes in pieces of a length; all at once when that is 0. The error that it throws; nil when it takes all.
    private func give(_ bytes: [UInt8], _ piece: Int = 0, to stream: inout TLSServer) -> TLSError? {
        let length = piece == 0 ? max(1, bytes.count) : piece
        for start in stride(from: 0, to: bytes.count, by: length) {
            let part = Array(bytes[start..<min(start + length, bytes.count)])
            do throws(TLSError) { try stream.receive(part.span.octets) } catch { return error }
        }
        return nil
    }

    private func take(from stream: inout TLSServer) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 40_000)
        var span = buffer.mutableSpan
        var octets = span.mutableOctets
        let count = stream.nextOutgoing(into: &octets)
        return Array(buffer[..<count])
    }

    @Test(arguments: [0, 1, 2, 3, 5])
    func `a first message that says to be long is refused before anything is kept of it`(_ piece: Int) throws {
        // A record of the type for handshakes; in it, a ClientHello.
        let cases: [(bytes: [UInt8], isTaken: Bool)] = [
            ([22, 3, 1, 0x40, 0, 1, 0, 0x40, 0, 3, 3], true), ([22, 3, 1, 0x40, 0, 1, 0, 0x40, 1, 3, 3], false),
            ([22, 3, 1, 0x40, 0, 1, 1, 0xFF, 0xFF, 3, 3], false),
            // Its header is cut into records.
            ([22, 3, 1, 0, 3, 1, 0, 2, 22, 3, 1], true), ([22, 3, 1, 0, 3, 1, 0, 0x40, 22, 3, 1, 0, 9, 1], false),
            // Another record comes first: an alert that it stops, which is no end.
            ([21, 3, 3, 0, 2, 1, 90] + Self.greedy, false),
        ]
        for (index, one) in cases.enumerated() {
            var stream = try TLSServer(server())
            let error = give(one.bytes, piece, to: &stream)
            #expect((error == nil) == one.isTaken, "case \(index)")
            if index < 5 { #expect(error == nil || error == .handshakeTooLong) }
        }
    }

    @Test(arguments: [0, 1, 7])
    func `a second ClientHello is bounded as the first one is`(_ piece: Int) throws {
        // X448 is nothing that the server has: it asks for another key (RFC 8446 §4.1.4).
        let client = try RawClient(version: TLS1_3_VERSION, groups: "X448:P-256")
        var stream = try TLSServer(server())
        #expect(give(client.answer(), piece, to: &stream) == nil)
        let retry = take(from: &stream)
        expect(!retry.isEmpty && stream.state == .handshaking)
        var other = try TLSServer(server())
        let second = try RawClient(version: TLS1_3_VERSION, groups: "X448:P-256")
        #expect(give(second.answer(), piece, to: &other) == nil)
        _ = take(from: &other)
        #expect(give(Self.greedy, piece, to: &other) == .handshakeTooLong)
        // The one that means it gets through.
        #expect(give(client.answer(retry), piece, to: &stream) == nil)
        #expect(give(client.answer(take(from: &stream)), piece, to: &stream) == nil)
        expect(stream.state == .established)
    }

    @Test(arguments: [(5_000, true), (7_500, true), (9_000, false)])
    func `both ClientHellos together are bounded`(_ length: Int, _ isTaken: Bool) throws {
        let client = try RawClient(version: TLS1_3_VERSION, groups: "X448:P-256", protocols: length / 201)
        var stream = try TLSServer(server())
        #expect(give(client.answer(), 1_000, to: &stream) == nil)
        let second = client.answer(take(from: &stream))
        #expect((give(second, 1_000, to: &stream) == nil) == isTaken)
        if isTaken {
            #expect(give(client.answer(take(from: &stream)), 1_000, to: &stream) == nil)
            expect(stream.state == .established)
        } else {
            expect(stream.state == .failed)
        }
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `data behind the handshake does not count`(_ version: Int32) throws {
        let client = try RawClient(version: version)
        var stream = try TLSServer(server())
        #expect(give(client.answer(), to: &stream) == nil)
        // The client may send data as soon as it has said that it is done; with TLS 1.2 it has to hear the same first.
        var rest = client.answer(take(from: &stream))
        if version == TLS1_2_VERSION {
            #expect(give(rest, to: &stream) == nil)
            rest = client.answer(take(from: &stream))
        }
        rest += client.write([UInt8](repeating: 7, count: 30_000))
        #expect(rest.count > 30_000 && give(rest, to: &stream) == nil)
        expect(stream.state == .established)
    }

    @Test func `with TLS 1_2 another handshake is refused, and not waited for when it is cut`() throws {
        for (cut, error) in [(Int.max, nil), (545, TLSError.protocolFailure(reason: SSL_R_NO_RENEGOTIATION))] {
            let name = Array(repeating: String(repeating: "x", count: 62), count: 4).joined(separator: ".")
            let client = try RawClient(version: TLS1_2_VERSION, fragment: 512, serverName: name)
            var stream = try TLSServer(server())
            #expect(give(client.answer(), to: &stream) == nil)
            #expect(give(client.answer(take(from: &stream)), to: &stream) == nil)
            expect(stream.state == .established)
            _ = client.answer(take(from: &stream))
            let another = client.renegotiate()
            // More than a record.
            #expect(another.count > 545)
            #expect(give(Array(another.prefix(cut)), to: &stream) == nil)
            var buffer = [UInt8](repeating: 0, count: 4_096)
            var span = buffer.mutableSpan
            var octets = span.mutableOctets
            var thrown: TLSError?
            do throws(TLSError) {
                expect(try stream.read(into: &octets) == .needsInput)
            } catch { thrown = error }
            #expect(thrown == error)
            expect((stream.state == .established) == (error == nil))
        }
    }
}
