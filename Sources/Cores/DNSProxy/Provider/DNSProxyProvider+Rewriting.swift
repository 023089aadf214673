internal import ByteAccess
internal import DNSMessage
internal import Provider

extension DNSProxyProvider {
    /// Takes out of an answer what clients are not to see, once, before it is kept. What is left is held to the rules again, so that the
    /// verdict is that of what clients get.
    ///
    /// - Parameters:
    ///   - kept: The answer at the start of a buffer, without an OPT record; afterwards what is left of it.
    ///   - count: Its length in bytes.
    ///   - spare: Another buffer for any message.
    /// - Returns: False when what is left cannot be written.
    func rewrite(
        _ kept: inout [UInt8], _ count: inout Int, _ verdict: inout AnswerVerdict, _ lookup: borrowing Lookup,
        _ spare: inout [UInt8]
    ) -> Bool {
        switch rewriter.rewrite(kept.span.octets.extracting(..<count), into: &spare) {
        case .unchanged: return true
        case .impossible: return false
        case .written(let length):
            count = length
            swap(&kept, &spare)
            guard let found = self.verdict(on: kept.span.octets.extracting(..<count), lookup) else { return false }
            verdict = found
            return true
        }
    }

    /// Says that there are no IPv6 addresses, without asking anybody, when none are wanted; nil for everything else.
    func answerWithoutIPv6(
        _ query: borrowing QueryView, by transport: ClientTransport, into output: inout MutableRawSpan
    ) -> Int? {
        guard rewriter.blocksIPv6, query.question.type == .aaaa else { return nil }
        return composer.negative(
            .noError, ExtendedError(.filtered, text: "dns.ipv6"), timeToLive: configuration.blockedTimeToLive,
            to: query,
            by: transport, into: &output)
    }
}
