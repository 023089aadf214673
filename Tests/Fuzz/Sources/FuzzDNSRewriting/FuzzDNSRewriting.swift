import DNSMessage
import DNSProxy
import FuzzSupport
import Provider

/// A server's answer to the question that is in it, and what a proxy that takes everything out makes of it: what a client gets is a
/// message, without what was to be taken out, the first time and from the cache.
@c(LLVMFuzzerTestOneInput)
public func fuzzDNSRewriting(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        guard bytes.byteCount >= DNSHeader.byteCount else { return }
        var input = [UInt8](copying: bytes)
        // An answer, and not cut: all else comes to nothing early.
        input[2] = input[2] & ~0x7A | 0x80
        guard let query = query(for: input) else { return }
        var configuration = DNSProxyConfiguration(upstreams: [DNSUpstream(name: "a", transport: .tcp)])
        configuration.rewriting.removesECH = true
        configuration.rewriting.removedProtocols = ["h3"]
        configuration.rewriting.removesHints = true
        configuration.rewriting.blocksIPv6 = true
        configuration.passesClientSubnet = true
        configuration.blocksRebinding = false
        var proxy = DNSProxyProvider()
        let now = Instant(nanoseconds: 1_000_000_000)
        guard (try? proxy.start(configuration, at: now)) != nil else { return }
        for client in 0..<2 as Range<UInt64> {
            for answer in ask(&proxy, query, client, input, at: now) { answer.read { check($0) } }
        }
    }
}

/// A query for what the answer says that was asked; nil when there is nothing that can be asked.
private func query(for answer: [UInt8]) -> [UInt8]? {
    answer.read { bytes -> [UInt8]? in
        guard let view = try? DNSMessageView(checking: bytes), let question = view.question else { return nil }
        let name = DomainName(question.name)
        var query = [UInt8](repeating: 0, count: 512)
        let outgoing = OutgoingQuery(id: 7, edns: EDNSFields(dnssecOK: true))
        let count = query.edit {
            try? outgoing.write(name.view, type: question.type, recordClass: question.recordClass, into: &$0)
        }
        return count.map { Array(query[..<$0]) }
    }
}

/// Puts the query, lets the server answer it when it is asked, and returns what the client gets.
private func ask(
    _ proxy: inout DNSProxyProvider, _ query: [UInt8], _ client: UInt64, _ answer: [UInt8], at now: Instant
) -> [[UInt8]] {
    var output = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity)
    let decision = query.read { query in
        output.edit {
            proxy.handle(query: query, from: ClientToken(rawValue: client), by: .tcp, at: now, into: &$0)
        }
    }
    if case .answer(let count) = decision { return [Array(output[..<count])] }
    var answers: [[UInt8]] = []
    for action in proxy.takeActions() {
        guard case .exchange(let exchange) = action else { continue }
        let entropy = QueryEntropy(id: UInt16(answer[0]) << 8 | UInt16(answer[1]), letters: [0, 0, 0, 0])
        guard output.edit({ proxy.writeQuery(of: exchange.id, entropy: entropy, into: &$0) }) != nil else { continue }
        answer.read { _ = proxy.received($0, for: exchange.id, reader: ViewAnswerReader(), at: now) }
    }
    for case .answer(_, let answer) in proxy.takeActions() { answers.append(answer) }
    return answers
}

private func check(_ bytes: RawSpan) {
    guard let answer = try? DNSMessageView(checking: bytes) else { fatalError("a client gets a message") }
    require(answer.bytes.byteCount == bytes.byteCount, "a client gets a whole message")
    require(
        answer.header.flags.isDisjoint(with: [.authoritativeAnswer, .reserved]), "no mark of the cache reaches a client"
    )
    var records = answer.records
    while let record = records.next() {
        require(record.type != .aaaa, "there are no IPv6 addresses")
        guard !record.isServiceAlias else { continue }
        var parameters = record.serviceParameters
        while let parameter = parameters.next() {
            require(parameter.key != .ech && parameter.addressCount == 0, "what is taken out is gone")
            var protocols = parameter.applicationProtocols
            while let identifier = protocols.next() {
                require([UInt8](copying: identifier) != [0x68, 0x33], "the protocol is gone")
            }
        }
    }
}
