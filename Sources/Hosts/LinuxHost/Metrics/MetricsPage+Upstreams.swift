internal import DNSProxy
internal import OpenMetrics
internal import Provider

extension MetricsPage {
    /// Writes how each upstream is doing.
    static func writeUpstreams(_ dns: DNSServiceStatus, to text: inout OpenMetricsText) {
        let upstreams = zip(dns.proxy.upstreams, dns.servers).map { (status, server) in
            let labels = [("upstream", status.name), ("transport", "\(status.transport)")]
            return (labels: labels, status: status, server: server)
        }
        text.begin("sluice_dns_upstream_up", .gauge, help: "0 while an upstream is asked after all others, else 1.")
        for (labels, status, _) in upstreams { text.addGauge(status.isDown ? 0 : 1, labels) }
        text.begin("sluice_dns_upstream_exchanges", .counter, help: "Exchanges with an upstream that were begun.")
        for (labels, status, _) in upstreams { text.addCount(status.exchanges, labels) }
        text.begin("sluice_dns_upstream_answers", .counter, help: "Exchanges with an upstream that ended in an answer.")
        for (labels, status, _) in upstreams { text.addCount(status.answers, labels) }
        text.begin(
            "sluice_dns_upstream_failures", .counter,
            help: "Exchanges with an upstream that came to nothing, by reason.")
        for (labels, status, _) in upstreams {
            for (reason, count) in status.failureCounts.byReason { text.addCount(count, labels + [("reason", reason)]) }
        }
        text.begin(
            "sluice_dns_upstream_latency_seconds", .histogram, unit: "seconds",
            help: "How long an upstream took for its answers, from the begin of the exchange.")
        let bounds = LatencyHistogram.bounds.map { Double($0) / 1_000 }
        for (labels, status, _) in upstreams {
            let sum = Double(status.latency.sum.nanoseconds) / 1_000_000_000
            text.addHistogram(bounds: bounds, counts: status.latency.counts, sum: sum, labels)
        }
        text.begin("sluice_dns_upstream_connections", .gauge, help: "Connections to an upstream that are open.")
        for (labels, _, server) in upstreams { text.addGauge(server.openConnectionCount, labels) }
        text.begin(
            "sluice_dns_upstream_failed_resolutions", .counter,
            help: "Look-ups of an upstream's address that came to nothing.")
        for (labels, _, server) in upstreams { text.addCount(UInt64(server.failedResolutionCount), labels) }
    }
}

extension ExchangeFailureCounts {
    /// The counts with the words for their reasons.
    fileprivate var byReason: [(String, UInt64)] {
        [
            ("unreachable", unreachable), ("connection_closed", connectionClosed), ("timed_out", timedOut),
            ("untrusted", untrusted), ("http_status", httpStatus), ("invalid_answer", invalidAnswer),
            ("no_address", noAddress), ("overloaded", overloaded),
        ]
    }
}
