internal import DNSMessage
internal import DNSProxy

/// One request and what has come of its response.
///
///     head ── 1xx ──▶ head ── 2xx, the right type ──▶ body ── its end ──▶ finished
///       └───────────────── anything else ──────────────┴─────────────────▶ failed
struct HTTPExchange {
    /// What comes of an exchange.
    typealias Outcome = Result<Response, ConnectionError>

    /// A whole response.
    struct Response {
        /// The body, with the ID of the caller's query.
        let message: [UInt8]
        let freshness: AnswerFreshness
    }

    /// The body of the request; empty for GET.
    let query: [UInt8]
    /// The ID that the caller's query had.
    let queryID: UInt16
    /// How much of it has been sent.
    private var sentCount = 0
    private var head = ResponseHead()
    private var isHeadDone = false
    private var body: [UInt8] = []

    /// How many bytes of the body have come.
    var receivedCount: Int { body.count }

    init(query: [UInt8], queryID: UInt16) {
        self.query = query
        self.queryID = queryID
    }

    /// Moves what is left of the request's body to `output`, as far as it fits.
    mutating func send(to output: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool) {
        let count = min(query.count - sentCount, output.count)
        // Both have as many bytes.
        unsafe query[sentCount..<sentCount + count].withUnsafeBytes { unsafe output.copyMemory(from: $0) }
        sentCount += count
        return (count, sentCount == query.count)
    }

    /// A block of header fields begins. What came before was no final response.
    mutating func beginFields() {
        if !isHeadDone { head = ResponseHead() }
    }

    /// Takes a field. Those behind the body say nothing that counts.
    mutating func take(_ name: RawSpan, _ value: RawSpan, limit: Int) throws(ConnectionError) {
        if isHeadDone { return }
        head.add(name, value)
        guard head.byteCount <= limit else { throw .headerTooLong }
    }

    /// A block of header fields is complete.
    mutating func endFields() throws(ConnectionError) {
        if isHeadDone { return }
        guard head.status >= 200 else { return }
        isHeadDone = true
        guard head.status < 300 else { throw .httpStatus(head.status) }
        guard head.isMessage else { throw .unexpectedContentType }
    }

    /// Takes a piece of the body.
    mutating func take(body piece: UnsafeBufferPointer<UInt8>) throws(ConnectionError) {
        guard body.count + piece.count <= DNSMessageView.maximumByteCount else { throw .bodyTooLong }
        unsafe body.append(contentsOf: piece)
    }

    /// The server has said all.
    mutating func end() -> Outcome {
        guard isHeadDone, body.count >= DNSHeader.byteCount, body[0] == 0, body[1] == 0, body[2] & 0x80 != 0 else {
            return .failure(.invalidAnswer)
        }
        // The bytes are taken out, so that they are changed where they are.
        var message: [UInt8] = []
        swap(&message, &body)
        message[0] = UInt8(truncatingIfNeeded: queryID >> 8)
        message[1] = UInt8(truncatingIfNeeded: queryID)
        return .success(Response(message: message, freshness: head.freshness))
    }
}
