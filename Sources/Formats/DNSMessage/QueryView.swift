import ByteAccess

/// A client's query that has been checked (RFC 1035 §4, RFC 9619): one question, opcode QUERY, no records but additional ones, and
/// EDNS of version 0 with options in order.
public struct QueryView: ~Escapable {
    /// The message, without what was behind it.
    public let bytes: RawSpan
    /// Where its parts are.
    public let layout: QueryLayout

    /// The fixed fields.
    public var header: DNSHeader { layout.header }
    /// Where the question is.
    public var questionLayout: QuestionLayout { layout.question }
    /// Where the OPT record is; nil when there is none.
    public var optLayout: RecordLayout? { layout.opt }

    /// A query that was checked before, and has not been changed since.
    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan, checkedTo layout: QueryLayout) {
        precondition(bytes.byteCount >= layout.question.endOffset, "the layout of another query")
        self.bytes = bytes
        self.layout = layout
    }

    /// Checks a query that is at the start of `bytes`. ``DNSMessageError/responseCode`` says how to answer when it is not in order,
    /// and ``QueryEcho`` finds what the answer has to repeat.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(DNSMessageError) {
        let header = try DNSHeader(parsing: bytes)
        guard !header.flags.contains(.response) else { throw .notAQuery }
        guard header.flags.opcode == .query else { throw .unsupportedOpcode }
        guard header.questionCount == 1 else { throw .invalidQuestionCount }
        guard header.answerCount == 0, header.authorityCount == 0 || Self.isTransfer(bytes) else {
            throw .recordsInQuery
        }
        let message = try DNSMessageView(checking: bytes)
        guard let question = message.questionLayout else { throw .invalidQuestionCount }
        if let edns = message.edns {
            // The version comes first: another one may give the options another meaning.
            guard edns.version == 0 else { throw .unsupportedEDNSVersion }
            if let subnet = try edns.clientSubnet, subnet.scopePrefixLength != 0 { throw .invalidClientSubnet }
            _ = try edns.cookie
        }
        self.bytes = message.bytes
        layout = QueryLayout(header: header, question: question, opt: message.optLayout)
    }

    /// True for a question of IXFR, which says in its authority section what is there already (RFC 1995 §3).
    private static func isTransfer(_ bytes: RawSpan) -> Bool {
        (try? QuestionLayout(checking: bytes))?.type == .ixfr
    }

    /// What is asked.
    public var question: QuestionView {
        @_lifetime(copy self)
        get { QuestionView(bytes, questionLayout) }
    }

    /// The OPT record; nil when there is none.
    public var edns: EDNSView? {
        @_lifetime(copy self)
        get {
            guard let optLayout else { return nil }
            return EDNSView(bytes, optLayout)
        }
    }

    /// True when signatures are wanted.
    public var dnssecOK: Bool { edns?.dnssecOK ?? false }

    /// True when the client understands AD: it set the bit, or DO (RFC 6840 §5.7 and §5.8).
    public var understandsAuthenticData: Bool { header.flags.contains(.authenticData) || dnssecOK }

    /// The size in bytes that an answer by UDP may have: what the client can take, 512 without EDNS, but `cap` at most.
    public func answerLimit(cap: Int = Int(EDNSFields.defaultUDPPayloadSize)) -> Int {
        min(max(cap, 512), edns?.effectiveUDPPayloadSize ?? 512)
    }

    /// What an answer has to repeat.
    public var echo: QueryEcho {
        @_lifetime(copy self)
        get { QueryEcho(bytes, header, questionLayout, optLayout) }
    }
}

/// What the check of a query found, for who keeps the query: ``QueryView/init(_:checkedTo:)`` reads it again without another check.
public struct QueryLayout: Sendable, BitwiseCopyable {
    /// The fixed fields.
    public let header: DNSHeader
    /// Where the question is.
    public let question: QuestionLayout
    /// Where the OPT record is; nil when there is none.
    public let opt: RecordLayout?
}

extension QueryLayout {
    /// The layout of a query that was written from the parts of one that is in order: the same question behind the header, and behind it
    /// an OPT record or nothing.
    public init(ofParts bytes: RawSpan, question: QuestionLayout) throws(DNSMessageError) {
        let header = try DNSHeader(parsing: bytes)
        let opt =
            header.additionalCount == 0
            ? nil : try RecordLayout(parsing: bytes, at: question.endOffset, section: .additional)
        self.init(header: header, question: question, opt: opt)
    }
}

/// What an answer has to repeat of a query, in order or not: all that has a header and is no answer itself.
public struct QueryEcho: ~Escapable {
    private let bytes: RawSpan
    /// The query's header.
    public let header: DNSHeader
    /// Where the question is; nil when it could not be read, or there is none or more than one.
    public let questionLayout: QuestionLayout?
    /// True when the query had an OPT record, so that the answer needs one (RFC 6891 §7).
    public let hasEDNS: Bool
    /// DO of the query.
    public let dnssecOK: Bool

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ header: DNSHeader, _ question: QuestionLayout?, _ opt: RecordLayout?) {
        self.bytes = bytes
        self.header = header
        questionLayout = question
        hasEDNS = opt != nil
        dnssecOK = opt.map { EDNSView(bytes, $0).dnssecOK } ?? false
    }

    /// Reads what there is. Throws only what leaves a query without an answer: ``DNSMessageError/truncatedHeader`` and
    /// ``DNSMessageError/notAQuery``.
    @_lifetime(copy bytes)
    public init(of bytes: RawSpan) throws(DNSMessageError) {
        let header = try DNSHeader(parsing: bytes)
        guard !header.flags.contains(.response) else { throw .notAQuery }
        var question: QuestionLayout?
        if header.questionCount == 1, header.flags.opcode == .query { question = try? QuestionLayout(checking: bytes) }
        self.init(bytes, header, question, Self.findOPT(in: bytes))
    }

    /// The first OPT record that can be found, even when questions and records around it are not in order.
    private static func findOPT(in bytes: RawSpan) -> RecordLayout? {
        guard var walk = try? RecordWalk(parsing: bytes) else { return nil }
        while let record = try? walk.next(in: bytes) {
            if record.type == .opt, record.section == .additional { return record }
        }
        return nil
    }

    /// The question, in the case that the client wrote it; nil when it could not be read.
    public var question: QuestionView? {
        @_lifetime(copy self)
        get {
            guard let questionLayout else { return nil }
            return QuestionView(bytes, questionLayout)
        }
    }
}
