internal import DNSProxy
internal import OpenMetrics

extension MetricsPage {
    /// Writes how the DNS proxy is doing.
    func write(_ dns: DNSServiceStatus, to text: inout OpenMetricsText) {
        let counters = dns.proxy.counters
        text.begin("sluice_dns_queries", .counter, help: "Queries that were answered, by transport and result.")
        for transport in ClientTransport.allCases {
            for result in QueryResult.allCases {
                text.addCount(
                    dns.proxy.results[transport, result],
                    [("transport", "\(transport)"), ("result", "\(result)".snakeCased)])
            }
        }
        text.begin("sluice_dns_unanswered_queries", .counter, help: "Queries of clients that got no answer, by reason.")
        let unanswered: [(String, UInt64)] = [
            ("no_header", counters.droppedWithoutHeader), ("not_a_query", counters.droppedAnswers),
            ("client_left", counters.abandoned), ("tunnel_overrun", dns.lostInTunnel),
            ("socket_overrun", dns.clients.datagrams.overrun),
        ]
        for (reason, count) in unanswered { text.addCount(count, [("reason", reason)]) }
        Self.count(
            counters.merged, "sluice_dns_merged_queries", "Queries that joined one that was under way.",
            &text)
        Self.count(
            counters.wrongAnswers, "sluice_dns_wrong_answers", "What came from upstreams and was not the answer.", &text
        )
        Self.writeStrategy(counters, to: &text)
        Self.gauge(dns.proxy.waiting, "sluice_dns_waiting_queries", "Queries that wait for their answer.", &text)
        Self.gauge(dns.proxy.lookups, "sluice_dns_lookups", "Questions that upstreams are being asked.", &text)
        writeCache(dns.proxy, to: &text)
        writeConnections(dns.clients.streams, to: &text)
        Self.writeHandshakes(dns.clients.secure, to: &text)
        Self.writeUpstreams(dns, to: &text)
    }

    private static func writeStrategy(_ counters: DNSProxyCounters, to text: inout OpenMetricsText) {
        count(
            counters.hastened, "sluice_dns_hastened_questions",
            "Times that more was asked because an upstream took longer than usual: another one, or it again.", &text)
        count(
            counters.unhastened, "sluice_dns_unhastened_questions",
            "Times that an upstream took longer than usual and no more was asked, as that was done too often.", &text)
        count(
            counters.parallel, "sluice_dns_parallel_questions",
            "Questions that were put to an upstream beside another one, at the same time.", &text)
    }

    private func writeCache(_ proxy: DNSProxyStatus, to text: inout OpenMetricsText) {
        Self.count(proxy.counters.cacheHits, "sluice_dns_cache_hits", "Queries that something was kept for.", &text)
        Self.count(
            proxy.counters.cacheMisses, "sluice_dns_cache_misses",
            "Queries that nothing was kept for, or only what is too old.", &text)
        Self.count(
            proxy.counters.stale, "sluice_dns_cache_stale_answers",
            "Queries that were answered with what is too old, because no upstream answered.", &text)
        Self.count(
            proxy.counters.prefetches, "sluice_dns_cache_prefetches",
            "Questions that were asked anew before the answer that is kept was too old.", &text)
        Self.count(
            proxy.counters.failedPrefetches, "sluice_dns_cache_failed_prefetches",
            "Questions that were asked anew early, and came to nothing.", &text)
        Self.count(
            proxy.cacheEvictions, "sluice_dns_cache_evictions",
            "Answers that went before their time because there was no room.", &text)
        Self.gauge(proxy.cachedAnswers, "sluice_dns_cache_entries", "Answers that are kept.", &text)
        text.begin("sluice_dns_cache_used_bytes", .gauge, unit: "bytes", help: "Memory that kept answers take up.")
        text.addGauge(proxy.cacheUsedByteCount)
        text.begin("sluice_dns_cache_limit_bytes", .gauge, unit: "bytes", help: "Memory that kept answers may take up.")
        text.addGauge(cacheLimit)
    }

    private func writeConnections(_ streams: StreamCounts, to text: inout OpenMetricsText) {
        Self.gauge(streams.connected, "sluice_dns_client_connections", "Connections of clients that are open.", &text)
        Self.count(
            streams.accepted, "sluice_dns_accepted_client_connections", "Connections of clients that were accepted.",
            &text)
        text.begin(
            "sluice_dns_ended_client_connections", .counter,
            help: "Connections of clients that the proxy turned away or ended, by reason.")
        let ends: [(String, UInt64)] = [
            ("refused", streams.refused), ("displaced", streams.displaced), ("timed_out", streams.timedOut),
            ("malformed", streams.malformed), ("overfull", streams.overfull),
        ]
        for (reason, count) in ends { text.addCount(count, [("reason", reason)]) }
    }

    private static func writeHandshakes(_ secure: SecureCounts, to text: inout OpenMetricsText) {
        text.begin(
            "sluice_dns_tls_handshakes", .counter, help: "Handshakes with clients by TLS that were done, by transport.")
        for (transport, count) in [("tls", secure.tls), ("https", secure.https)] {
            text.addCount(count, [("transport", transport)])
        }
        text.begin(
            "sluice_dns_failed_tls_handshakes", .counter,
            help: "Handshakes with clients by TLS that were not done, by reason.")
        let failures: [(String, UInt64)] = [
            ("failed", secure.failedHandshakes), ("too_long", secure.overlongHandshakes),
            ("displaced", secure.displacedHandshakes),
        ]
        for (reason, count) in failures { text.addCount(count, [("reason", reason)]) }
        gauge(
            secure.handshaking, "sluice_dns_tls_handshakes_under_way", "Handshakes with clients by TLS, not done yet.",
            &text)
    }

    static func count(_ value: UInt64, _ name: String, _ help: String, _ text: inout OpenMetricsText) {
        text.begin(name, .counter, help: help)
        text.addCount(value)
    }

    static func gauge(_ value: Int, _ name: String, _ help: String, _ text: inout OpenMetricsText) {
        text.begin(name, .gauge, help: help)
        text.addGauge(value)
    }
}
