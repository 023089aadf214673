internal import ByteAccess
internal import EncryptedDNS
internal import SecureStream

/// TLS between a client's connection and its queries, and HTTP/2 in it where that is spoken.
///
/// ```
///   handshaking ── agreed ──▶ open ── the client says that it is done ──▶ writes only ──▶ closed
///        └──── anything wrong, another protocol ────┴──▶ failed
/// ```
final class SecureChannel {
    /// What is spoken.
    let kind: SecureService.Kind
    private let path: String
    /// The encryption.
    var stream: TLSServer
    /// The requests; nil without HTTP, and before the handshake is done.
    private(set) var requests: RequestStreams?
    /// True once the handshake is done.
    private(set) var isOpen = false
    /// True when the client has said that nothing more comes from it.
    private(set) var hasClientEnded = false

    /// A connection that was just accepted.
    init(_ service: SecureService, _ stream: consuming TLSServer) {
        kind = service.kind
        path = service.path
        self.stream = stream
    }

    /// How many bytes are kept for requests and answers of HTTP.
    var heldByteCount: Int { requests?.session.bufferedByteCount ?? 0 }

    /// Takes ciphertext and decrypts what it can to the start of `output`; returns how many bytes.
    func receive(
        _ ciphertext: RawSpan, into output: inout MutableRawSpan
    ) throws(SecureChannelError) -> Int {
        do throws(TLSError) {
            try stream.receive(ciphertext)
        } catch {
            throw isOpen ? .broken : error == .handshakeTooLong ? .handshakeTooLong : .handshake
        }
        guard stream.state == .established else { return 0 }
        if !isOpen { try open() }
        var count = 0
        while true {
            // It is larger than all that can be decrypted at once: a piece of the stream, and a record that was not whole before.
            guard count < output.byteCount else { throw .broken }
            var rest = output.slice(count..<output.byteCount)
            let result: TLSReadResult
            do throws(TLSError) { result = try stream.read(into: &rest) } catch { throw .broken }
            switch result {
            case .bytes(let more): count += more
            case .needsInput: return count
            case .closed:
                hasClientEnded = true
                return count
            }
        }
    }

    private func open() throws(SecureChannelError) {
        isOpen = true
        guard kind == .https else { return }
        // Without an agreement a client would speak HTTP/1.1.
        guard stream.negotiatedProtocol == "h2" else {
            stream.close()
            throw .noHTTP2
        }
        do throws(ConnectionError) {
            requests = RequestStreams(try DoHServerSession(path: path))
        } catch { throw .broken }
    }

    /// Encrypts what HTTP has to say, until about `limit` bytes of ciphertext wait.
    func encryptResponses(atMost limit: Int) throws(SecureChannelError) {
        guard let requests else { return }
        do {
            while stream.outgoingCount < limit {
                let bytes = try requests.session.takeOutgoing()
                if bytes.isEmpty { return }
                try stream.write(bytes.span.octets)
            }
        } catch {
            throw .broken
        }
    }

    /// Says that nothing more comes: by HTTP, if that is spoken, and by TLS.
    func close() {
        guard isOpen, stream.state == .established else { return }
        if let requests {
            requests.session.goAway()
            // It is the last thing: what does not fit is not said.
            try? encryptResponses(atMost: 16_384)
        }
        stream.close()
    }
}

/// The HTTP session of a client, with the streams whose queries wait for the proxy.
final class RequestStreams {
    /// The session.
    var session: DoHServerSession
    private var waiting: [(number: UInt32, stream: Int32)] = []

    /// A session that has just begun.
    init(_ session: consuming DoHServerSession) {
        self.session = session
    }

    /// Notes which stream's query has a number.
    func add(_ number: UInt32, _ stream: Int32) { waiting.append((number, stream)) }

    /// The stream of the query with a number, which is not known any more then.
    func takeStream(of number: UInt32) -> Int32? {
        guard let index = waiting.firstIndex(where: { $0.number == number }) else { return nil }
        waiting.swapAt(index, waiting.count - 1)
        return waiting.removeLast().stream
    }

    /// The number of a stream's query, which is not known any more then.
    func takeNumber(of stream: Int32) -> UInt32? {
        guard let index = waiting.firstIndex(where: { $0.stream == stream }) else { return nil }
        waiting.swapAt(index, waiting.count - 1)
        return waiting.removeLast().number
    }
}

/// Why a connection by TLS is ended.
enum SecureChannelError: Error {
    /// Both sides could not agree on how to encrypt.
    case handshake
    /// The client sends more than a handshake takes.
    case handshakeTooLong
    /// The client does not speak HTTP/2.
    case noHTTP2
    /// The client broke a protocol.
    case broken
}
