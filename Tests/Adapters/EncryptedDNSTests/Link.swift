import ByteAccess
import DNSProxy
import EncryptedDNS
import Provider
import SecureStream

/// A connection and a TLS server, whose ciphertext goes from one to the other in pieces of a size.
struct Link<Connection: DNSConnection & ~Copyable>: ~Copyable {
    var connection: Connection
    var server: TLSServer
    /// All plaintext that the server has decrypted.
    var decrypted: [UInt8] = []
    /// All that happened on the connection.
    var events: [ConnectionEvent] = []
    private let pieceLength: Int

    init(_ connection: consuming Connection, _ server: consuming TLSServer, pieceLength: Int = 1400) {
        self.connection = connection
        self.server = server
        self.pieceLength = pieceLength
    }

    /// Moves ciphertext both ways until there is none. Errors of the server are answers to alerts of the client.
    mutating func run(at now: Instant = seconds(1)) {
        while connection.outgoingCount > 0 || server.outgoingCount > 0 {
            let sent = connection.takeOutgoing(pieceLength)
            try? server.receive(sent.span.octets)
            while let piece = try? Self.read(&server), !piece.isEmpty { decrypted += piece }
            var buffer = [UInt8](repeating: 0, count: pieceLength)
            let count: Int
            do {
                var span = buffer.mutableSpan
                var octets = span.mutableOctets
                count = server.nextOutgoing(into: &octets)
            }
            connection.receive(Array(buffer[..<count]).span.octets, at: now)
        }
        events += connection.takeEvents()
    }

    /// The server writes.
    mutating func write(_ bytes: [UInt8], at now: Instant = seconds(1)) throws {
        try server.write(bytes.span.octets)
        run(at: now)
    }

    private static func read(_ server: inout TLSServer) throws(TLSError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var span = buffer.mutableSpan
        var octets = span.mutableOctets
        guard case .bytes(let count) = try server.read(into: &octets) else { return [] }
        return Array(buffer[..<count])
    }
}
