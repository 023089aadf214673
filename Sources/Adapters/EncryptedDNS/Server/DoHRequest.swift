internal import ByteAccess
internal import DNSMessage

/// One request as far as it has come.
struct DoHRequest {
    /// What of methods makes a difference (RFC 8484 §4.1).
    private enum Method {
        case get
        case post
        case other
    }

    private var method = Method.other
    private var path: [UInt8] = []
    private var isMessage = false
    private var headerByteCount = 0
    private var isHeaderTooLong = false
    private var body: [UInt8] = []
    private var isBodyTooLong = false

    /// How many bytes are kept for it.
    var byteCount: Int { path.count + body.count }

    /// Takes a header field, whose name is in lower case.
    mutating func add(_ name: RawSpan, _ value: RawSpan, limit: Int) {
        headerByteCount += name.byteCount + value.byteCount
        guard headerByteCount <= limit else {
            isHeaderTooLong = true
            path = []
            return
        }
        if name.isText(":method") {
            // Methods have one spelling only (RFC 9110 §9.1).
            method = value.hasSameBytes(as: "GET") ? .get : value.hasSameBytes(as: "POST") ? .post : .other
        } else if name.isText(":path") {
            path = [UInt8](copying: value)
        } else if name.isText("content-type") {
            isMessage = ResponseHead.isMessageType(value)
        }
    }

    /// Takes a piece of the body, which is kept only as far as a query may come of it.
    mutating func add(body piece: RawSpan) {
        guard method == .post, isMessage, !isBodyTooLong, !isHeaderTooLong else { return }
        guard body.count + piece.byteCount <= DNSMessageView.maximumByteCount else {
            isBodyTooLong = true
            body = []
            return
        }
        body += [UInt8](copying: piece)
    }

    /// The query of a whole request to the server's path: a header's length of bytes at least, whatever they are.
    func query(at resource: [UInt8]) throws(DoHRefusal) -> [UInt8] {
        if isHeaderTooLong { throw .headerFieldsTooLarge }
        let mark = path.firstIndex(of: UInt8(ascii: "?")) ?? path.count
        guard path[..<mark] == resource[...] else { throw .notFound }
        let query: [UInt8]
        switch method {
        case .other: throw .methodNotAllowed
        case .post:
            guard isMessage else { throw .unsupportedMediaType }
            if isBodyTooLong { throw .contentTooLarge }
            query = body
        case .get:
            guard let decoded = Self.parameter(in: path.span.octets.extracting(min(mark + 1, path.count)...)) else {
                throw .badRequest
            }
            query = decoded
        }
        guard query.count <= DNSMessageView.maximumByteCount else { throw .contentTooLarge }
        guard query.count >= DNSHeader.byteCount else { throw .badRequest }
        return query
    }

    /// What the parameter `dns` stands for; nil when it is missing, given twice, or no base64url.
    private static func parameter(in text: RawSpan) -> [UInt8]? {
        var found: [UInt8]?
        var start = 0
        while start < text.byteCount {
            var end = start
            while end < text.byteCount, text.uint8(at: end) != UInt8(ascii: "&") { end += 1 }
            let part = text.extracting(start..<end)
            if part.byteCount >= 4, part.extracting(..<4).hasSameBytes(as: "dns=") {
                guard found == nil, let decoded = Base64URL.decode(part.extracting(4...)) else { return nil }
                found = decoded
            }
            start = end + 1
        }
        return found
    }
}

extension RawSpan {
    /// True when these are the bytes of a text.
    fileprivate func hasSameBytes(as text: StaticString) -> Bool {
        guard text.utf8CodeUnitCount == byteCount else { return false }
        return text.withUTF8Buffer { text in
            for offset in byteOffsets {
                // As many bytes as there are here: see above.
                guard unsafe text[offset] == uint8(at: offset) else { return false }
            }
            return true
        }
    }
}
