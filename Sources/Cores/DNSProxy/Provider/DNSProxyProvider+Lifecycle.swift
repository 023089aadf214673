internal import ByteAccess
public import DNSMessage
public import Provider

extension DNSProxyProvider {
    /// Apple's `startProxy`: it is done when this returns, since nothing has to be waited for. Of one that runs, it is a reload.
    ///
    /// - Parameter options: What the program that asks for the start gave. There are none that change anything.
    public mutating func start(
        _ configuration: DNSProxyConfiguration, options: StartOptions? = nil, at now: Instant
    ) throws(DNSProxyError) {
        if isRunning { return try reload(configuration, at: now) }
        try configuration.check()
        isRunning = true
        isAsleep = false
        adopt(configuration)
        cache = AnswerCache(byteLimit: configuration.cacheByteCount, evictionCount: cache.evictionCount)
        log(.info, "the DNS proxy runs; upstreams: \(configuration.upstreams.count)")
        discovery.adopt(configuration.dns64, at: now)
        discoverPrefix(at: now)
    }

    /// Apple's `stopProxy`: it is done when this returns and the actions are carried out. Who still waits is told that there is nobody.
    public mutating func stop(_ reason: ProviderStopReason, at now: Instant) {
        guard isRunning else { return }
        isRunning = false
        isAsleep = false
        for slot in lookups.occupied {
            guard let lookup = lookups.take(slot) else { continue }
            fail(lookup, slot, .notReady, at: now)
        }
        discovery = PrefixDiscovery()
        cache = AnswerCache(byteLimit: 0, evictionCount: cache.evictionCount)
        (buffers, aliasBuffer) = (([], []), [])
        log(.info, "the DNS proxy stops: \(reason)")
    }

    /// Makes the proxy what the configuration says. Rules are followed at once. Answers that are kept stay unless servers or routes
    /// are others; what is under way is asked anew then. It succeeds whole or changes nothing.
    public mutating func reload(_ configuration: DNSProxyConfiguration, at now: Instant) throws(DNSProxyError) {
        try configuration.check()
        guard isRunning else { return }
        let before = self.configuration
        let isRerouted =
            before.upstreams != configuration.upstreams
            || !before.routes.elementsEqual(configuration.routes) { $0.leads(as: $1) }
            || before.defaultUpstreams != configuration.defaultUpstreams
        // What is under way belongs to servers that may be gone.
        if isRerouted { haltAll() }
        adopt(configuration)
        let isTranslatedAnew = before.dns64 != configuration.dns64
        let isRewrittenAnew = before.rewriting != configuration.rewriting
        if isRerouted || isTranslatedAnew || isRewrittenAnew || before.cacheByteCount != configuration.cacheByteCount {
            cache = AnswerCache(byteLimit: configuration.cacheByteCount, evictionCount: cache.evictionCount)
        }
        // Other servers may know another prefix.
        if isRerouted || isTranslatedAnew { discovery.adopt(configuration.dns64, at: now) }
        if isRerouted {
            emit(.resetConnections)
            askAnew(at: now)
        }
        discoverPrefix(at: now)
        log(.info, "the DNS proxy has a new configuration")
    }

    private mutating func adopt(_ configuration: DNSProxyConfiguration) {
        if configuration.upstreams != self.configuration.upstreams {
            upstreams = configuration.upstreams.map { UpstreamState(upstream: $0) }
        }
        self.configuration = configuration
        rules = NameRules(configuration.rules, addresses: configuration.addressRules)
        rules.blockedHosts = hosts.blocked
        rulesGeneration &+= 1
        rewriter = AnswerRewriter(configuration.rewriting)
        rebindingAllowed = NameTable(configuration.rebindingAllowed.map { ($0, true) })
        records = LocalNames()
        // They were checked.
        for record in configuration.records { try? records.add(record) }
        routes = NameTable(
            configuration.routes.enumerated().flatMap { index, route in route.domains.map { ($0, index) } })
        composer.passesClientSubnet = configuration.passesClientSubnet
        if !configuration.passesClientSubnet { subnets = SubnetIndex() }
        composer.blockedAnswer = configuration.blockedAnswer
        composer.blockedTimeToLive = configuration.blockedTimeToLive
        composer.idleTenths = UInt16(clamping: configuration.clientIdle.nanoseconds / 100_000_000)
    }

    /// Apple's `handleNewFlow`: whether the provider takes another flow.
    public func handleNewFlow() -> FlowDecision { isRunning && !refusesFlows ? .handle : .terminate }

    /// Apple's `sleep`: it is done when this returns. There are no deadlines from now on.
    public mutating func sleep() {
        guard isRunning else { return }
        isAsleep = true
    }

    /// Apple's `wake`: what became due is done once, and what still has time is asked anew, by new connections.
    public mutating func wake(at now: Instant) {
        guard isAsleep else { return }
        isAsleep = false
        expire(at: now)
        startOver(at: now)
    }

    /// The way to the network is this one now. What is under way is asked anew when it is another that can be used.
    public mutating func pathChanged(_ path: NetworkPath, at now: Instant) {
        let before = self.path
        guard path.isUsable else {
            if before?.isUsable == true { log(.info, "there is no path to the network") }
            return
        }
        self.path = path
        guard isRunning, let before, before != path else { return }
        log(.info, "the path to the network is another one")
        startOver(at: now)
    }

    /// The network has other ways, although the path to it is the same: a tunnel is up, or down. As with another path, what is under way
    /// is asked anew, by new connections.
    public mutating func networkChanged(at now: Instant) {
        guard isRunning else { return }
        startOver(at: now)
    }

    /// Gives memory back.
    public mutating func shed(_ shedding: MemoryShedding) {
        if shedding.contains(.caches) {
            cache.removeAll()
        } else if shedding.contains(.oldCacheEntries) {
            cache.removeOlderHalf()
        }
        if shedding.contains(.spareCapacity) { (buffers, aliasBuffer) = (([], []), []) }
        refusesFlows = shedding.contains(.newFlows)
    }

    /// Takes over what hosts files say, in place of what they said before.
    public mutating func setHosts(_ hosts: HostNames) {
        self.hosts = hosts
        rules.blockedHosts = hosts.blocked
        rulesGeneration &+= 1
    }

    /// Forgets what is known of a name and of all below it, or all that is known.
    ///
    /// - Returns: How many answers are gone.
    @discardableResult
    public mutating func flushCache(of name: DomainName? = nil) -> Int {
        guard let name else {
            let count = cache.count
            cache.removeAll()
            return count
        }
        var buffer = takeBuffer(&buffers.output)
        let count = Self.remove(name, from: &cache, &buffer)
        buffers.output = buffer
        return count
    }

    private static func remove(_ name: DomainName, from cache: inout AnswerCache, _ buffer: inout [UInt8]) -> Int {
        var span = buffer.mutableSpan
        var scratch = span.mutableOctets
        let view = name.view
        return cache.remove(view, scratch: &scratch)
    }

    private mutating func startOver(at now: Instant) {
        for index in upstreams.indices { upstreams[index].startOver() }
        cache.removeFailures()
        forgetPrefix(at: now)
        emit(.resetConnections)
        askAnew(at: now)
        discoverPrefix(at: now)
    }

    /// Gives up all exchanges.
    private mutating func haltAll() {
        for slot in lookups.occupied {
            guard var lookup = lookups.take(slot) else { continue }
            cancelAttempts(of: &lookup)
            lookup.stepDeadline = nil
            lookups.put(lookup, slot)
        }
    }

    /// Begins what is under way again. Its time goes on.
    private mutating func askAnew(at now: Instant) {
        expire(at: now)
        for slot in lookups.occupied {
            guard var lookup = lookups.take(slot) else { continue }
            cancelAttempts(of: &lookup)
            // What another network or server said does not count.
            if case .addresses = lookup.phase { lookup.phase = .question }
            lookup.route = route(of: lookup)
            begin(lookup, slot, at: now)
        }
    }
}
