import ByteAccess
import CMeasurement
import DNSMessage
import IPPacket
import LDNSMessage

/// DNS messages as a resolver sees them most.
enum TestMessages {
    /// A query for the address of a name, with EDNS.
    static let query: [UInt8] =
        [0xAB, 0xCD, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1] + name + [0, 1, 0, 1] + opt

    /// The same with a cookie, as dig sends it.
    static let queryWithCookie: [UInt8] =
        Array(query.dropLast(2)) + [0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]

    /// Its answer: an alias, two addresses, a name server and EDNS.
    static let answer: [UInt8] =
        [0xAB, 0xCD, 0x81, 0x80, 0, 1, 0, 3, 0, 1, 0, 1] + name + [0, 1, 0, 1]
        + [0xC0, 0x0C, 0, 5, 0, 1, 0, 0, 0, 100, 0, 6, 3, 0x63, 0x64, 0x6E, 0xC0, 0x10]
        + [0xC0, 0x2D, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1]
        + [0xC0, 0x2D, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 2]
        + [0xC0, 0x10, 0, 2, 0, 1, 0, 0, 14, 16, 0, 5, 2, 0x6E, 0x73, 0xC0, 0x10] + opt

    /// Local records for the query: an alias and two addresses.
    static func localRecords() throws -> [ResourceRecord] {
        let owner = try DomainName(parsing: "www.example.com")
        let (target, data) = (try DomainName(parsing: "cdn.example.com"), [3, 0x63, 0x64, 0x6E] + name[4...])
        return [
            ResourceRecord(owner: owner, type: .cname, timeToLive: 300, data: data),
            ResourceRecord(owner: target, type: .a, timeToLive: 300, data: [192, 0, 2, 1]),
            ResourceRecord(owner: target, type: .a, timeToLive: 300, data: [192, 0, 2, 2]),
        ]
    }

    /// www.example.com.
    private static let name: [UInt8] =
        [3, 0x77, 0x77, 0x77, 7, 0x65, 0x78, 0x61, 0x6D, 0x70, 0x6C, 0x65, 3, 0x63, 0x6F, 0x6D, 0]
    private static let opt: [UInt8] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]
}

/// Checks a query and makes the key that its answer is looked up with.
struct QueryParsing: Benchmark {
    let operations = 4096
    let message = TestMessages.query

    mutating func run() {
        for _ in 0..<operations {
            guard let query = try? QueryView(checking: message.span.octets) else { preconditionFailure("no query") }
            let key = CacheKey(query)
            measurement_consume(UInt64(key.bytes.byteCount))
        }
    }
}

/// Reads a query in one pass.
struct PlainQueryReading: Benchmark {
    let operations = 8192
    let message = TestMessages.query

    mutating func run() {
        for _ in 0..<operations {
            guard let query = PlainQuery(message.span.octets) else { preconditionFailure("no plain query") }
            measurement_consume(UInt64(query.questionEnd))
        }
    }
}

/// Checks an answer from its first byte to its last, as it is done once before anything is made of it.
struct AnswerChecking: Benchmark {
    let operations = 2048
    let message = TestMessages.answer

    mutating func run() {
        for _ in 0..<operations {
            guard let answer = try? DNSMessageView(checking: message.span.octets) else {
                preconditionFailure("no answer")
            }
            measurement_consume(UInt64(answer.bytes.byteCount))
        }
    }
}

/// Has an answer read by the view alone or by ldns for policy, once it was checked.
struct FactFinding: Benchmark {
    let operations = 512
    let usesLDNS: Bool
    let message = TestMessages.answer

    mutating func run() {
        for _ in 0..<operations {
            guard let answer = try? DNSMessageView(checking: message.span.octets),
                let facts = usesLDNS ? try? LDNSAnswerReader().facts(of: answer) : ViewAnswerReader().facts(of: answer)
            else { preconditionFailure("no answer") }
            measurement_consume(UInt64(facts.addresses.count))
        }
    }
}

/// Checks an answer, reads every record of it, and finds out for how long it may be kept.
struct AnswerWalking: Benchmark {
    let operations = 2048
    let message = TestMessages.answer

    mutating func run() {
        for _ in 0..<operations {
            guard let answer = try? DNSMessageView(checking: message.span.octets) else {
                preconditionFailure("no answer")
            }
            var records = answer.records
            while let record = records.next() {
                measurement_consume(UInt64(record.owner.length) + UInt64(record.timeToLive))
                if let address = record.address { measurement_consume(UInt64(address.bitWidth)) }
                if let target = record.target { measurement_consume(UInt64(target.labelCount)) }
            }
            guard case .positive(let seconds) = answer.cacheLifetime else { preconditionFailure("no lifetime") }
            measurement_consume(UInt64(seconds))
        }
    }
}

/// Takes a second off the TTL of every record.
struct Aging: Benchmark {
    let operations = 4096
    var message = TestMessages.answer

    mutating func run() {
        let operations = operations
        var span = message.mutableSpan
        var bytes = span.mutableOctets
        for _ in 0..<operations {
            guard (try? MessageEditing.age(&bytes, by: 1)) != nil else { preconditionFailure("no answer") }
        }
    }
}

/// Makes a stored answer a client's: its ID, its letters, its EDNS, the time that has passed.
struct CacheHit: Benchmark {
    let operations = 2048
    let query = TestMessages.query
    var buffer = TestMessages.answer + [UInt8](repeating: 0, count: 1024)

    mutating func run() {
        let (operations, query) = (operations, query)
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        var count = TestMessages.answer.count
        for _ in 0..<operations {
            guard let view = try? QueryView(checking: query.span.octets),
                (try? MessageEditing.copyQuestionCase(from: view.question, in: &bytes)) == true,
                (try? MessageEditing.age(&bytes, by: 1)) != nil,
                let end = try? MessageEditing.replaceOPT(
                    in: &bytes, count: count, with: EDNSFields(), limit: view.answerLimit())
            else { preconditionFailure("no answer") }
            MessageEditing.setID(view.header.id, in: &bytes)
            count = end
            measurement_consume(UInt64(count))
        }
    }
}

/// Writes an answer of our own.
struct SmallAnswers: Benchmark {
    enum Kind {
        case failure, negative, addresses
    }

    let operations = 2048
    let kind: Kind
    let query = TestMessages.query
    let addresses: [IPAddress] = [.v4(.unspecified), .v6(.unspecified)]
    var buffer = [UInt8](repeating: 0, count: 1232)

    init(_ kind: Kind) {
        self.kind = kind
    }

    mutating func run() {
        let (operations, kind, query, addresses) = (operations, kind, query, addresses)
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        for _ in 0..<operations {
            guard let view = try? QueryView(checking: query.span.octets) else { preconditionFailure("no query") }
            let echo = view.echo
            let count: Int?
            switch kind {
            case .failure: count = try? echo.writeFailure(.refused, into: &bytes)
            case .negative: count = try? echo.writeNegative(.noError, timeToLive: 10, into: &bytes)
            case .addresses: count = try? echo.writeAddresses(addresses.span, timeToLive: 10, into: &bytes)
            }
            guard let count else { preconditionFailure("no answer") }
            measurement_consume(UInt64(count))
        }
    }
}

/// Cuts a stream into messages that come in pieces of a size.
struct Framing: Benchmark {
    let operations = 1024
    let pieceLength: Int
    private let stream: [UInt8]
    private var buffer = [UInt8](repeating: 0, count: 512)

    init(pieceLength: Int) {
        self.pieceLength = pieceLength
        stream = (0..<operations).flatMap { _ in [0, UInt8(TestMessages.query.count)] + TestMessages.query }
    }

    mutating func run() {
        let (operations, pieceLength, stream) = (operations, pieceLength, stream)
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        var reader = FramedMessageReader()
        var (start, found) = (0, 0)
        while start < stream.count {
            let piece = stream.span.octets.extracting(start..<min(start + pieceLength, stream.count))
            start += piece.byteCount
            var offset = 0
            reading: while true {
                switch try? reader.next(piece, at: &offset, buffer: &bytes) {
                case .messageInInput, .messageInBuffer: found += 1
                case .needsInput: break reading
                case .needsBuffer, nil: preconditionFailure("no message")
                }
            }
        }
        precondition(found == operations)
    }
}
