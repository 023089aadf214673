internal import ByteAccess
internal import DNSMessage

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
public enum ClientTransport: UInt8, Hashable, Sendable, BitwiseCopyable {
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
    /// The query.
    let bytes: [UInt8]
    /// How many of its bytes are the header and the question.
    let questionEnd: Int

    init(
        _ query: borrowing QueryView, from client: ClientToken, by transport: ClientTransport, keepsSubnet: Bool = false
    ) {
        self.client = client
        self.transport = transport
        questionEnd = query.questionLayout.endOffset
        var bytes = [UInt8](copying: query.bytes.extracting(..<questionEnd))
        // What is behind the question is one record or none.
        for offset in 6..<12 { bytes[offset] = 0 }
        if let edns = query.edns {
            bytes[11] = 1
            let size = edns.udpPayloadSize
            // The options of RFC 7828 and RFC 7830, without values.
            var options: [UInt8] = query.asksForKeepalive ? [0, 11, 0, 0] : []
            if query.asksForPadding { options += [0, 12, 0, 0] }
            if keepsSubnet, let subnet = edns.value(of: .clientSubnet) {
                // Four bytes and an address at most, as it was checked.
                options += [0, 8, 0, UInt8(truncatingIfNeeded: subnet.byteCount)] + [UInt8](copying: subnet)
            }
            bytes += [0, 0, 41, UInt8(size >> 8), UInt8(size & 0xFF), 0, 0, edns.dnssecOK ? 0x80 : 0, 0]
            bytes += [0, UInt8(options.count)] + options
        }
        self.bytes = bytes
    }
}

extension QueryView {
    /// True when the client asks how long its connection may be idle (RFC 7828).
    var asksForKeepalive: Bool { edns?.tcpKeepalive != nil }

    /// True when the client pads, and so wants answers padded (RFC 7830 §4).
    var asksForPadding: Bool { edns?.paddingLength != nil }
}
