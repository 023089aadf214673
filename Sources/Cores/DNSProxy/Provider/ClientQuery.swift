internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Names a client's query until it is answered. The host chooses the numbers; no two queries that wait have the same.
public struct ClientToken: Hashable, Sendable {
    /// The number.
    public var rawValue: UInt64

    /// The query with a number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// How a client's query came.
public enum ClientTransport: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    /// In a datagram: the answer has to fit into one.
    case udp
    /// On a connection: the answer may have any length.
    case tcp
    /// On a connection by TLS (RFC 7858).
    case tls
    /// In a request by HTTPS (RFC 8484).
    case https

    /// True when answers are padded for who pads queries: nobody on the way can read either (RFC 7830 §6).
    var isEncrypted: Bool { self == .tls || self == .https }

    /// True when a client may ask how long its connection lives (RFC 7828 §3.2). HTTP has its own ways.
    var hasKeepalive: Bool { self == .tcp || self == .tls }
}

/// A client's query that waits, cut down to what an answer needs: header, question, and an OPT record of which only wishes for
/// keepalive and padding are left, and its network where that is passed on.
struct WaitingQuery: Sendable {
    let client: ClientToken
    let transport: ClientTransport
    /// When it came.
    let arrivedAt: Instant
    /// True when it joined one that was under way.
    let isMerged: Bool
    /// The query.
    let bytes: [UInt8]
    private let layout: QueryLayout
    /// When the client asked for another name, which local records make an alias of this one: its question and the aliases, as a
    /// message.
    var aliases: [UInt8]?

    init(
        _ query: borrowing QueryView, from client: ClientToken, by transport: ClientTransport, at now: Instant,
        keepsSubnet: Bool = false, isMerged: Bool = false
    ) {
        self.client = client
        self.transport = transport
        arrivedAt = now
        self.isMerged = isMerged
        let questionEnd = query.questionLayout.endOffset
        var bytes: [UInt8] = []
        bytes.reserveCapacity(questionEnd + 47)
        // Every bit pattern is a byte.
        unsafe query.bytes.extracting(..<questionEnd).withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        // What is behind the question is one record or none.
        for offset in 6..<12 { bytes[offset] = 0 }
        if let edns = query.edns {
            bytes[11] = 1
            let size = edns.udpPayloadSize
            let record: InlineArray<11, UInt8> = [
                0, 0, 41, UInt8(size >> 8), UInt8(size & 0xFF), 0, 0, edns.dnssecOK ? 0x80 : 0, 0, 0, 0,
            ]
            for index in record.indices { bytes.append(record[index]) }
            let start = bytes.count
            // The options of RFC 7828 and RFC 7830, without values.
            if query.asksForKeepalive { Self.append(code: 11, length: 0, to: &bytes) }
            if query.asksForPadding { Self.append(code: 12, length: 0, to: &bytes) }
            if keepsSubnet, let subnet = edns.value(of: .clientSubnet) {
                // Four bytes and an address at most, as it was checked.
                Self.append(code: 8, length: UInt8(truncatingIfNeeded: subnet.byteCount), to: &bytes)
                for offset in subnet.byteOffsets { bytes.append(subnet.uint8(at: offset)) }
            }
            bytes[start - 1] = UInt8(truncatingIfNeeded: bytes.count - start)
        }
        guard let layout = try? QueryLayout(ofParts: bytes.span.octets, question: query.questionLayout) else {
            preconditionFailure("a query that is written above")
        }
        self.layout = layout
        self.bytes = bytes
    }

    /// The query, to be read.
    var query: QueryView {
        @_lifetime(borrow self)
        get { QueryView(bytes.span.octets, checkedTo: layout) }
    }

    /// How many of its bytes are the header and the question.
    var questionEnd: Int { layout.question.endOffset }

    /// Adds what an option begins with.
    private static func append(code: UInt8, length: UInt8, to bytes: inout [UInt8]) {
        bytes.append(0)
        bytes.append(code)
        bytes.append(0)
        bytes.append(length)
    }
}

extension QueryView {
    /// True when the client asks how long its connection may be idle (RFC 7828).
    var asksForKeepalive: Bool { edns?.tcpKeepalive != nil }

    /// True when the client pads, and so wants answers padded (RFC 7830 §4).
    var asksForPadding: Bool { edns?.paddingLength != nil }
}
