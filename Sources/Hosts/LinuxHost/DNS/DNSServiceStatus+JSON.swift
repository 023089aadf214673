internal import DNSProxy
internal import IPPacket
internal import Provider

extension DNSServiceStatus {
    /// The part `dns` of the status.
    var json: JSONText {
        let counters = proxy.counters
        return .object([
            (
                "queries",
                .object([
                    ("all", .number(counters.queries)), ("cacheHits", .number(counters.cacheHits)),
                    ("stale", .number(counters.stale)),
                    ("blocked", .number(counters.blocked)), ("rebinding", .number(counters.rebinding)),
                    ("local", .number(counters.local)), ("refused", .number(counters.refused)),
                    ("merged", .number(counters.merged)), ("forwarded", .number(counters.forwarded)),
                    ("failed", .number(counters.failed)), ("overloaded", .number(counters.overloaded)),
                    ("abandoned", .number(counters.abandoned)),
                    ("dropped", .number(counters.droppedWithoutHeader + counters.droppedAnswers)),
                    ("lostInTunnel", .number(lostInTunnel)),
                ])
            ),
            (
                "strategy",
                .object([
                    ("hastened", .number(counters.hastened)), ("unhastened", .number(counters.unhastened)),
                    ("parallel", .number(counters.parallel)),
                ])
            ),
            ("wrongAnswers", .number(counters.wrongAnswers)), ("lookups", .number(proxy.lookups)),
            ("waiting", .number(proxy.waiting)),
            (
                "cache",
                .object([
                    ("answers", .number(proxy.cachedAnswers)), ("usedBytes", .number(proxy.cacheUsedByteCount)),
                    ("bytes", .number(proxy.cacheByteCount)), ("prefetches", .number(counters.prefetches)),
                    ("failedPrefetches", .number(counters.failedPrefetches)),
                ])
            ),
            ("records", .number(proxy.localRecords)),
            (
                "hosts",
                .object([
                    ("addresses", .number(proxy.hosts.addresses)), ("blocked", .number(proxy.hosts.blocked)),
                    ("ignoredLines", .number(proxy.hosts.ignoredLines)),
                ])
            ),
            ("dns64Prefix", proxy.translationPrefix.map { .string($0.description) } ?? .null),
            ("clients", Self.json(clients)),
            ("upstreams", .array(zip(proxy.upstreams, servers).map { Self.json($0, $1) })),
        ])
    }

    private static func json(_ clients: ClientCounts) -> JSONText {
        let (datagrams, streams) = (clients.datagrams, clients.streams)
        return .object([
            (
                "udp",
                .object([
                    ("received", .number(datagrams.received)), ("overrun", .number(datagrams.overrun)),
                    ("sent", .number(datagrams.sent)),
                    ("bufferFull", .number(datagrams.bufferFull)), ("failed", .number(datagrams.failed)),
                ])
            ),
            (
                "tcp",
                .object([
                    ("connected", .number(streams.connected)), ("accepted", .number(streams.accepted)),
                    ("refused", .number(streams.refused)), ("displaced", .number(streams.displaced)),
                    ("timedOut", .number(streams.timedOut)), ("malformed", .number(streams.malformed)),
                    ("overfull", .number(streams.overfull)), ("left", .number(streams.left)),
                ])
            ),
            ("secure", clients.secure.json),
        ])
    }

    private static func json(_ upstream: UpstreamStatus, _ server: ServerStatus) -> JSONText {
        .object([
            ("name", .string(upstream.name)), ("transport", .string("\(upstream.transport)")),
            ("down", .boolean(upstream.isDown)), ("exchanges", .number(upstream.exchanges)),
            ("answers", .number(upstream.answers)), ("failures", .number(upstream.failures)),
            ("lastFailure", .optional(upstream.lastFailure?.description)),
            ("losesCase", .boolean(upstream.losesCase)),
            ("roundTripMicroseconds", .optional(upstream.roundTripTime.map { $0.nanoseconds / 1000 })),
            ("latency", json(upstream.latency)), ("connections", .number(server.openConnectionCount)),
            ("addresses", .strings(server.addresses)), ("addressesFrom", .string(server.addressSource.rawValue)),
            ("failedResolutions", .number(server.failedResolutionCount)),
            ("trustProblem", .optional(server.trustProblem?.text)),
            ("lastProblem", .optional(server.lastProblem?.text)),
        ])
    }

    private static func json(_ latency: LatencyHistogram) -> JSONText {
        .object([
            ("boundsMilliseconds", .array(LatencyHistogram.bounds.map { .number($0) })),
            ("counts", .array(latency.counts.map { .number($0) })),
            ("sumMicroseconds", .number(latency.sum.nanoseconds / 1000)),
        ])
    }
}
