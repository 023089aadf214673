internal import ByteAccess
internal import DNSMessage
internal import Glibc
internal import IPPacket

/// One of the two questions of a look-up, with the socket that it is asked by.
final class BootstrapQuestion {
    /// How far it is.
    enum State {
        /// Nothing has come yet.
        case asked
        /// The answer does not fit into a datagram.
        case truncated
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
    /// True when the question was asked by TCP.
    private(set) var isStream = false
    /// True when it has been written.
    private var isWritten = false
    /// What has come by TCP.
    private var incoming: [UInt8] = []

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

    /// Asks once more, by a TCP socket that is being connected to the resolver (RFC 7766 §5).
    func ask(byStream socket: consuming ServerSocket, _ loop: borrowing EventLoop) throws(SystemCallError) {
        if let token {
            try loop.register(
                socket.descriptor, token: token, interest: [.readable, .writable], trigger: .edge)
        }
        isStream = true
        state = .asked
        self.socket = consume socket
    }

    /// Gives the socket up.
    func close() { socket = nil }

    /// Reads what has come, into `buffer`. True when that ended the question, or the question by UDP.
    func receive(into buffer: inout [UInt8]) -> Bool {
        if isStream { return receiveByStream(into: &buffer) }
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

    private func receiveByStream(into buffer: inout [UInt8]) -> Bool {
        do throws(SystemCallError) {
            if !isWritten {
                let message = [UInt8(query.count >> 8), UInt8(query.count & 0xFF)] + query
                // It fits into the empty buffer of a new connection, or that has failed.
                try socket?.send(message.span.octets)
                isWritten = true
            }
            while let count = try socket?.receive(into: &buffer) {
                incoming += buffer[..<count]
                if incoming.count >= 2, incoming.count >= 2 + Int(incoming[0]) << 8 + Int(incoming[1]) {
                    let message = incoming
                    state = read(message.span.octets.extracting(2...)) ?? .failed
                    return true
                }
                guard count > 0 else {
                    state = .failed
                    return true
                }
            }
            return false
        } catch {
            // TCP is not there yet.
            if error.errno == EAGAIN || error.errno == ENOTCONN { return false }
            state = .failed
            return true
        }
    }

    /// What a message says; nil when it is not the answer.
    private func read(_ message: RawSpan) -> State? {
        let query = query
        guard let sent = try? QueryView(checking: query.span.octets),
            let answer = try? DNSMessageView(checking: message)
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
        if answer.header.flags.contains(.truncated) { return isStream ? .failed : .truncated }
        return .answered(addresses, timeToLive: timeToLive)
    }
}
