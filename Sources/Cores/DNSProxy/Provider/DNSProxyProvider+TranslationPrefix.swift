internal import ByteAccess
internal import DNSMessage
internal import IPPacket
internal import Provider

/// What DNS64 does with the prefix besides making addresses: it is found out, and names that are about it are answered.
extension DNSProxyProvider {
    /// Has servers asked for the prefix when it is time to.
    mutating func discoverPrefix(at now: Instant) {
        guard isRunning, !isAsleep, let due = discovery.nextQuestion, due <= now else { return }
        discovery.noteQuestion()
        let bytes = IPv4OnlyName.query
        guard let query = try? QueryView(checking: bytes.span.octets) else {
            preconditionFailure("a query that is written above")
        }
        let cacheKey = CacheKey(query)
        let key = [UInt8](copying: cacheKey.bytes)
        if let slot = lookups.slot(of: key) {
            lookups.change(slot) { $0.discoversPrefix = true }
            return
        }
        // Nobody waits for it: the number is never used.
        let first = WaitingQuery(query, from: ClientToken(rawValue: .max), by: .udp, at: now)
        var lookup = Lookup(key: key, deadline: now + configuration.timeout, first: first, route: nil)
        lookup.discoversPrefix = true
        lookup.route = route(of: lookup)
        let slot = lookups.admit(lookup)
        begin(consume lookup, slot, at: now)
    }

    /// Takes the prefix from an answer. What is kept was made with another one, or without: it is forgotten when this is a new one.
    mutating func notePrefix(_ addresses: [IPAddress], timeToLive: UInt32, at now: Instant) {
        let before = discovery.prefix
        discovery.noteAnswer(addresses, timeToLive: timeToLive, at: now)
        guard discovery.prefix != before else { return }
        cache.removeAll()
        if discovery.prefix == nil {
            log(.info, "the network has no prefix for DNS64 any more")
        } else {
            log(.info, "the network has a prefix for DNS64")
        }
    }

    /// Forgets the network's prefix and what was made with it, and asks for the new one.
    mutating func forgetPrefix(at now: Instant) {
        let before = discovery.prefix
        discovery.startOver(at: now)
        if discovery.prefix != before { cache.removeAll() }
    }

    /// Answers about `ipv4only.arpa` and about the names of its addresses, for which nobody has to be asked when there is a prefix
    /// (RFC 8880 §7.1 and §7.2), and about what is below.
    ///
    /// - Parameter reverse: The name of the IPv4 address in the one that the question is about.
    func answerIPv4Only(
        _ query: borrowing QueryView, _ name: borrowing CanonicalName, _ reverse: DomainName?,
        by transport: ClientTransport, into output: inout MutableRawSpan
    ) -> Int? {
        guard let prefix = discovery.prefix else { return nil }
        let timeToLive = IPv4OnlyName.timeToLive
        if let count = answerIPv4OnlyAddress(query, name, reverse, by: transport, into: &output) { return count }
        guard IPv4OnlyName.holds(name) else { return nil }
        guard name.labelCount == IPv4OnlyName.labelCount else {
            return composer.negative(
                .nameError, timeToLive: timeToLive, zoneLabelCount: IPv4OnlyName.labelCount, to: query, by: transport,
                into: &output)
        }
        let own = IPv4OnlyName.addresses
        let addresses = own.map { IPAddress.v4($0) } + own.map { IPAddress.v6(prefix.address(of: $0)) }
        return composer.addresses(addresses.span, timeToLive: timeToLive, to: query, by: transport, into: &output)
    }

    /// Answers about the names of the addresses of `ipv4only.arpa`, and of what is made of them.
    private func answerIPv4OnlyAddress(
        _ query: borrowing QueryView, _ name: borrowing CanonicalName, _ reverse: DomainName?,
        by transport: ClientTransport, into output: inout MutableRawSpan
    ) -> Int? {
        let timeToLive = IPv4OnlyName.timeToLive
        if let reverse {
            guard IPv4OnlyName.isOfAddress(reverse) else { return nil }
        } else {
            guard IPv4OnlyName.holdsReverse(name) else { return nil }
            let labelCount = IPv4OnlyName.reverseLabelCount
            guard name.labelCount == labelCount, query.question.type == .ptr else {
                return composer.negative(
                    name.labelCount == labelCount ? .noError : .nameError, timeToLive: timeToLive,
                    zoneLabelCount: labelCount, to: query, by: transport, into: &output)
            }
        }
        return composer.pointer(
            to: IPv4OnlyName.domainName, timeToLive: timeToLive, to: query, by: transport, into: &output)
    }

    /// The name of the IPv4 address in the one that a question about a name of an address is about; nil when there is none.
    func reverseName(_ type: RecordType, _ name: borrowing CanonicalName) -> DomainName? {
        guard type == .ptr, let prefix = discovery.prefix, let address = ReverseName.address(of: name),
            let embedded = prefix.embedded(in: address)
        else { return nil }
        return ReverseName.name(of: embedded)
    }

    /// True when nobody outside knows the name of an IPv4 address, and no route says who does.
    func isUnknownOutside(_ name: DomainName) -> Bool {
        let canonical = CanonicalName(lowercased: name.bytes)
        return specialNames.longestMatch(of: canonical) != nil && routes.longestMatch(of: canonical) == nil
    }
}
