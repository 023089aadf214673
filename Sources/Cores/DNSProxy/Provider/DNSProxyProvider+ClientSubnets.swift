internal import ByteAccess
internal import DNSMessage
internal import Provider

/// Client subnets, when they are passed on (RFC 7871). Clients that tell nothing about themselves are served as if there was no such
/// thing, and what they are told is never made for somebody else's network.
extension DNSProxyProvider {
    /// What a client says about its network, when that is passed on.
    func passedSubnet(of query: borrowing QueryView) -> ClientSubnet? {
        guard configuration.passesClientSubnet else { return nil }
        return query.clientSubnet
    }

    /// Answers from what is kept for a client's network, or for all.
    mutating func answerFromCache(
        _ query: borrowing QueryView, _ key: borrowing CacheKey, for subnet: ClientSubnet, _ policy: AnswerPolicy,
        by transport: ClientTransport, at now: Instant, into output: inout MutableRawSpan
    ) -> Int? {
        let question = query.question
        for scope in subnets.scopes(of: [UInt8](copying: key.bytes), for: subnet) {
            let flags = CacheKey.flags(key.flags, number: scope.number)
            guard let hit = cache.find(question, flags: flags, at: now, into: &output) else { continue }
            if hit.entry.kind == .failure {
                counters.failed &+= 1
                let code = MessageEditing.flags(of: output).responseCode
                return composer.failure(code, .cachedError, to: query, by: transport, into: &output)
            }
            return give(hit, to: query, policy, by: transport, scope: scope.scopeLength, at: now, into: &output)
        }
        return nil
    }

    /// The number under which an answer is kept: 0 when it is not made for a network.
    mutating func cacheNumber(of lookup: borrowing Lookup, _ kind: CacheEntry.Kind) -> UInt8 {
        guard let subnet = lookup.subnet else {
            subnets.forgetAnswerForAll(of: lookup.key)
            return 0
        }
        // That nobody could answer concerns who asked, and others with the same network.
        let scopeLength = kind == .failure ? UInt8.max : lookup.scopeLength
        return subnets.number(for: lookup.key, subnet, scopeLength: scopeLength)
    }
}
