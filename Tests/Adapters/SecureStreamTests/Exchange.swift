import ByteAccess
import SecureStream
import Testing

/// A client and a server whose ciphertext goes from one to the other in pieces of a size.
struct Exchange: ~Copyable {
    var client: TLSClient
    var server: TLSServer
    /// All plaintext that the server has read.
    var received: [UInt8] = []
    private let pieceLength: Int

    init(_ client: consuming TLSClient, _ server: TLSServerContext, pieceLength: Int = 1400) throws {
        self.client = client
        self.server = try TLSServer(server)
        self.pieceLength = pieceLength
    }

    /// Moves ciphertext both ways until there is none, and reads what the server can read. Throws the client's error; the server's is
    /// ignored, as it is an answer to an alert of the client.
    mutating func run() throws(TLSError) {
        while client.outgoingCount > 0 || server.outgoingCount > 0 {
            let sent = Self.take(pieceLength) { client.nextOutgoing(into: &$0) }
            try? server.receive(sent.span.octets)
            _ = try? drain()
            let answered = Self.take(pieceLength) { server.nextOutgoing(into: &$0) }
            try client.receive(answered.span.octets)
        }
    }

    private mutating func drain() throws {
        while true {
            var buffer = [UInt8](repeating: 0, count: 4096)
            var span = buffer.mutableSpan
            var octets = span.mutableOctets
            guard case .bytes(let count) = try server.read(into: &octets) else { return }
            received += buffer[..<count]
        }
    }

    private static func take(_ pieceLength: Int, _ body: (inout MutableRawSpan) -> Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: pieceLength)
        var span = buffer.mutableSpan
        var octets = span.mutableOctets
        let count = body(&octets)
        return Array(buffer[..<count])
    }
}

extension TLSClient {
    /// What can be read now.
    mutating func readAll() throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            var buffer = [UInt8](repeating: 0, count: 300)
            var span = buffer.mutableSpan
            var octets = span.mutableOctets
            guard case .bytes(let count) = try read(into: &octets) else { return all }
            all += buffer[..<count]
        }
    }
}

/// Expects what is said of values that cannot be copied, which `#expect` cannot take apart.
func expect(_ condition: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(condition, sourceLocation: sourceLocation)
}
