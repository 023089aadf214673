internal import OpenMetrics
internal import Provider
internal import WireGuard

/// All that is counted, as OpenMetrics. There is nothing in it about a single client, name or packet, and neither a key nor an address:
/// upstreams go by the names that the configuration gives them, peers by their place in the order of `wg show`.
struct MetricsPage {
    /// Where the page is.
    static let path = "/metrics"

    /// The tunnel, where there is one.
    struct Tunnel {
        /// True while it is up and the network is there.
        var isConnected: Bool
        /// What is counted of each peer, in the order in which they were added.
        var peers: [PeerSnapshot]
        /// What was dropped.
        var drops: [(DropReason, UInt64)]
    }

    /// The version of the program.
    var version: String
    /// When the process began to run.
    var startedAt: WallClockTime
    /// What the process takes.
    var process: ProcessUsage
    /// How the DNS proxy is doing; nil without one.
    var dns: DNSServiceStatus?
    /// How many bytes the DNS proxy's cache may take.
    var cacheLimit = 0
    /// How the tunnel is doing; nil without one.
    var tunnel: Tunnel?

    /// The page.
    var text: String {
        var text = OpenMetricsText()
        writeProcess(to: &text)
        if let dns { write(dns, to: &text) }
        if let tunnel { Self.write(tunnel, to: &text) }
        return text.text
    }

    private func writeProcess(to text: inout OpenMetricsText) {
        text.begin("sluice_build", .info, help: "The program.")
        text.addInfo([("version", version)])
        text.begin(
            "process_start_time_seconds", .gauge, unit: "seconds", help: "When the process began to run, since 1970.")
        text.addGauge(Double(startedAt.seconds) + Double(startedAt.nanoseconds) / 1_000_000_000)
        text.begin(
            "process_cpu_seconds", .counter, unit: "seconds", help: "How long processors have worked for the process.")
        text.addCount(process.processorSeconds)
        text.begin(
            "process_resident_memory_bytes", .gauge, unit: "bytes", help: "Memory of the process that is there.")
        text.addGauge(process.residentByteCount)
        text.begin(
            "process_anonymous_memory_bytes", .gauge, unit: "bytes",
            help: "Memory of the process that is its own: resident memory without code and files.")
        text.addGauge(process.anonymousByteCount)
        text.begin("process_open_fds", .gauge, help: "Descriptors of the process that are open.")
        text.addGauge(process.openDescriptorCount)
    }

    private static func write(_ tunnel: Tunnel, to text: inout OpenMetricsText) {
        text.begin("sluice_tunnel_connected", .gauge, help: "1 while the tunnel is up and its path is there.")
        text.addGauge(tunnel.isConnected ? 1 : 0)
        let peers = tunnel.peers.enumerated().map { (labels: [("peer", String($0.offset + 1))], peer: $0.element) }
        text.begin(
            "sluice_tunnel_peer_received_bytes", .counter, unit: "bytes", help: "What came from a peer, whole messages."
        )
        for (labels, peer) in peers { text.addCount(peer.receivedBytes, labels) }
        text.begin(
            "sluice_tunnel_peer_sent_bytes", .counter, unit: "bytes", help: "What was sent to a peer, whole messages.")
        for (labels, peer) in peers { text.addCount(peer.sentBytes, labels) }
        text.begin(
            "sluice_tunnel_peer_last_handshake_timestamp_seconds", .gauge, unit: "seconds",
            help: "When the last handshake with a peer ended, since 1970.")
        for (labels, peer) in peers {
            guard let time = peer.lastHandshake else { continue }
            text.addGauge(time.seconds, labels)
        }
        text.begin("sluice_tunnel_dropped_packets", .counter, help: "Packets and messages that were dropped.")
        for (reason, count) in tunnel.drops { text.addCount(count, [("reason", "\(reason)".snakeCased)]) }
    }
}

extension String {
    /// `replayedCounter` as `replayed_counter`, `malformedTUNPacket` as `malformed_tun_packet`.
    var snakeCased: String {
        let letters = Array(self)
        var text = ""
        for (index, letter) in letters.enumerated() {
            if letter.isUppercase, index > 0 {
                let endsWord = letters[index - 1].isLowercase
                let beginsWord = index + 1 < letters.count && letters[index + 1].isLowercase
                if endsWord || beginsWord { text += "_" }
            }
            text += letter.lowercased()
        }
        return text
    }
}
