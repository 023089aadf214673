internal import ByteAccess
internal import DNSMessage
internal import Glibc
internal import IPPacket
internal import Provider

/// One of the two questions of a look-up, with the socket that it is asked by.
final class BootstrapQuestion {
    /// How far it is.
    enum State {
        /// Nothing has come yet.
        case asked
        /// The resolver could not, or did not want to.
        case failed
        /// The addresses, with the least TTL in seconds of what they were found by; none when there are none.
        case answered([IPAddress], timeToLive: UInt32)
    }

    /// The upstream that it is about.
    let upstream: ServerUpstream
    /// What the event loop reports the socket under; nil without one.
    var token: UInt64?
    /// How far it is.
    var state = State.asked
    private let query: [UInt8]
    private var socket: ServerSocket?

    /// The question for addresses of one family.
    init?(_ name: DomainName, _ type: RecordType, id: UInt16, upstream: ServerUpstream) {
        var query = [UInt8](repeating: 0, count: 512)
        let length: Int
        do throws(DNSMessageError) {
            var span = query.mutableSpan
            var octets = span.mutableOctets
            // Without EDNS, which the plainest of resolvers may not know.
            length = try OutgoingQuery(id: id, edns: nil).write(name.view, type: type, into: &octets)
        } catch {
            return nil
        }
        self.query = Array(query[..<length])
        self.upstream = upstream
    }

    /// Sends the question by a socket that is connected to the resolver.
    func ask(by socket: consuming ServerSocket, _ loop: borrowing EventLoop) throws(SystemCallError) {
        if let token { try loop.register(socket.descriptor, token: token, interest: .readable) }
        let query = query
        try socket.send(query.span.octets)
        self.socket = consume socket
    }

    /// Gives the socket up.
    func close() { socket = nil }

    /// Reads what has come, into `buffer`. True when that ended the question.
    func receive(into buffer: inout [UInt8]) -> Bool {
        while true {
            do throws(SystemCallError) {
                guard let count = try socket?.receive(into: &buffer) else { return false }
                guard let state = read(buffer.span.octets.extracting(..<count)) else { continue }
                self.state = state
            } catch {
                state = .failed
            }
            return true
        }
    }

    /// What a datagram says; nil when it is not the answer.
    private func read(_ datagram: RawSpan) -> State? {
        let query = query
        guard let sent = try? QueryView(checking: query.span.octets),
            let answer = try? DNSMessageView(checking: datagram)
        else {
            return nil
        }
        let question = sent.question
        do throws(AnswerMismatch) {
            try answer.check(isAnswerTo: question, id: sent.header.id)
        } catch {
            return nil
        }
        guard answer.responseCode == .noError || answer.responseCode == .nameError,
            let name = answer.canonicalName
        else { return .failed }
        var addresses: [IPAddress] = []
        var timeToLive = UInt32.max
        var records = answer.records(in: .answer)
        while let record = records.next() {
            timeToLive = min(timeToLive, record.timeToLive)
            guard record.type == question.type, record.owner.isEqual(to: name), let address = record.address
            else { continue }
            addresses.append(address)
        }
        if addresses.isEmpty, answer.header.flags.contains(.truncated) { return .failed }
        return .answered(addresses, timeToLive: timeToLive)
    }
}

/// The look-up of an upstream's name, asked of the resolvers of the configuration one after the other.
final class BootstrapLookup {
    let upstream: ServerUpstream
    /// For IPv6 and IPv4.
    var questions: [BootstrapQuestion] = []
    /// How many resolvers were asked.
    var attemptCount = 0
    /// When the next resolver is asked, or what came is made do with.
    var deadline: Instant

    /// How long a resolver may take; twice as long when all have been asked before.
    static let patience = Interval.seconds(1)
    /// How much longer one family is waited for when the other is there.
    static let familyPatience = Interval.milliseconds(200)
    /// How often all resolvers are asked.
    static let roundCount = 2

    /// A look-up for which nobody has been asked.
    init(_ upstream: ServerUpstream, at now: Instant) {
        self.upstream = upstream
        deadline = now
    }

    /// True when nothing more is to come from this resolver.
    var isComplete: Bool {
        questions.allSatisfy {
            if case .asked = $0.state { false } else { true }
        }
    }

    /// The addresses that came, a family after the other in turn, IPv6 first (RFC 8305 §4), and how long they hold.
    var result: (addresses: [IPAddress], interval: Interval) {
        var families: [[IPAddress]] = []
        var timeToLive = UInt32.max
        for question in questions {
            guard case .answered(let addresses, let seconds) = question.state, !addresses.isEmpty else { continue }
            families.append(addresses)
            timeToLive = min(timeToLive, seconds)
        }
        var all: [IPAddress] = []
        for index in 0..<(families.map(\.count).max() ?? 0) {
            for family in families where index < family.count { all.append(family[index]) }
        }
        return (all, .seconds(UInt64(timeToLive)))
    }
}
