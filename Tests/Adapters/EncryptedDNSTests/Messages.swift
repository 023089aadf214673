import ByteAccess
import DNSProxy
import EncryptedDNS
import Provider
import SecureStream
import Testing

/// A query for the addresses of a name, octet by octet; with an OPT record, or without.
func query(_ name: String, id: UInt16 = 0xABCD, edns: Bool = false) -> [UInt8] {
    var bytes: [UInt8] = [UInt8(id >> 8), UInt8(id & 0xFF), 1, 0, 0, 1, 0, 0, 0, 0, 0, edns ? 1 : 0]
    for label in name.split(separator: ".") {
        bytes.append(UInt8(label.utf8.count))
        bytes.append(contentsOf: label.utf8)
    }
    bytes += [0, 0, 1, 0, 1]
    if edns { bytes += [0, 0, 41, 0x04, 0xD0, 0, 0, 0, 0, 0, 0] }
    return bytes
}

/// The answer that servers here give: the query's own bytes, with QR and RA set.
func answer(to query: [UInt8], id: UInt16? = nil) -> [UInt8] {
    var bytes = query
    if let id { (bytes[0], bytes[1]) = (UInt8(id >> 8), UInt8(id & 0xFF)) }
    bytes[2] |= 0x80
    bytes[3] = 0x80
    return bytes
}

/// The name that a message asks for.
func name(in message: [UInt8]) -> String {
    var (labels, offset) = ([String](), 12)
    while offset < message.count, message[offset] != 0 {
        let length = Int(message[offset])
        labels.append(String(decoding: message.dropFirst(offset + 1).prefix(length), as: UTF8.self))
        offset += 1 + length
    }
    return labels.joined(separator: ".")
}

/// A message with its length in front.
func framed(_ message: [UInt8]) -> [UInt8] { [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message }

/// Seconds on a clock that stands still unless it is told.
func seconds(_ seconds: Double) -> Instant { Instant(nanoseconds: UInt64(seconds * 1e9)) }

func exchange(_ number: UInt64) -> ExchangeID { ExchangeID(rawValue: number) }

extension DNSConnection where Self: ~Copyable {
    /// Sends a query that is waited for five seconds long.
    mutating func send(
        _ query: [UInt8], _ number: UInt64, at now: Instant = seconds(1), deadline: Instant? = nil
    ) throws(SendError) {
        try send(query.span.octets, exchange: exchange(number), deadline: deadline ?? now + .seconds(5), at: now)
    }

    /// Bytes for the socket, `length` at most.
    mutating func takeOutgoing(_ length: Int = 65_536) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: length)
        var span = buffer.mutableSpan
        var octets = span.mutableOctets
        let count = nextOutgoing(into: &octets)
        return Array(buffer[..<count])
    }
}

extension [ConnectionEvent] {
    /// The answers among them, by the numbers of their exchanges.
    var answers: [UInt64: [UInt8]] {
        var all: [UInt64: [UInt8]] = [:]
        for case .answer(let answer) in self { all[answer.exchange.rawValue] = answer.message }
        return all
    }

    /// The failures among them, by the numbers of their exchanges.
    var failures: [UInt64: ConnectionError] {
        var all: [UInt64: ConnectionError] = [:]
        for case .failed(let exchange, let error) in self { all[exchange.rawValue] = error }
        return all
    }

    /// Why the connection ended; nil when it has not.
    var end: ConnectionError? {
        for case .closed(let error) in self { return error }
        return nil
    }
}

/// Expects what is said of values that cannot be copied, which `#expect` cannot take apart.
func expect(_ condition: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(condition, sourceLocation: sourceLocation)
}
