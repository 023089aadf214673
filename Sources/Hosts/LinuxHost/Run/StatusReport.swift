/// A daemon's answer to who asks how it is.
public struct StatusReport: Sendable {
    /// The answer as it came: one line of JSON.
    public let json: String
    /// The number that changes with the state.
    public let revision: UInt64
    private let root: JSONFields

    /// Reads an answer.
    init(line: String) throws(StatusFailure) {
        let root = try ControlAnswer.fields(of: line)
        guard let revision = root.number("revision") else { throw .notUnderstood }
        json = line
        self.revision = revision
        self.root = root
    }

    /// The answer for people: the interface, then its peers, as `wg` shows them.
    ///
    /// - Parameter now: The time of day in seconds since 1970, which ages count from.
    public func text(now: UInt64) -> String {
        var lines = ["interface: \(root.string("interface") ?? "none")"]
        var state = root.string("status") ?? "unknown"
        if let reason = root.string("reason") { state += " (\(reason))" }
        if root.boolean("asleep") { state += ", asleep" }
        lines.append("  status: \(state)")
        if let settings = root.object("settings") {
            lines += Self.list("addresses", settings.strings("addresses"))
            lines += Self.list("routes", settings.strings("includedRoutes"))
            lines += Self.list("routes kept out", settings.strings("excludedRoutes"))
            lines += Self.list("resolvers", settings.strings("dnsServers"))
            lines += Self.list("search domains", settings.strings("searchDomains"))
        }
        if let mtu = root.number("mtu") { lines.append("  mtu: \(mtu)") }
        if let port = root.number("listenPort") { lines.append("  listening port: \(port)") }
        if let mark = root.number("firewallMark") { lines.append("  fwmark: 0x\(String(mark, radix: 16))") }
        if let table = root.number("table") { lines.append("  routing table: \(table)") }
        if let offloads = root.object("offloads") { lines.append("  offloads: \(Self.text(of: offloads))") }
        if let workers = root.number("workers") { lines.append("  threads: \(workers)") }
        if let drops = root.object("drops"), !drops.names.isEmpty {
            let counts = drops.names.map { "\($0) \(drops.number($0) ?? 0)" }
            lines.append("  dropped: \(counts.joined(separator: ", "))")
        }
        if let dns = root.object("dns") { lines += ["", "dns:"] + Self.lines(dns) }
        if let keeper = root.string("systemResolver") {
            lines.append("  machine's resolver: asks here, by way of \(keeper)")
        }
        for peer in root.objects("peers") {
            lines += ["", "peer: \(peer.string("publicKey") ?? "")"] + Self.lines(peer, now)
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func list(_ name: String, _ values: [String]) -> [String] {
        values.isEmpty ? [] : ["  \(name): \(values.joined(separator: ", "))"]
    }

    private static func text(of offloads: JSONFields) -> String {
        let tun = offloads.object("tun")
        let segment = offloads.object("udpSegment")
        var text = "tun \(worst([tun?.string("tcp"), tun?.string("udp"), tun?.string("write")]))"
        text += ", udpSegment \(worst([segment?.string("ipv4"), segment?.string("ipv6")]))"
        if let count = segment?.number("restrictedDestinations"), count > 0 {
            text += " (not to \(count) destinations)"
        }
        return text + ", udpGRO \(offloads.string("udpGRO") ?? "unknown")"
    }

    /// The first that is not "on".
    private static func worst(_ conditions: [String?]) -> String {
        conditions.first { $0 != "on" }.map { $0 ?? "unknown" } ?? "on"
    }

    private static func lines(_ dns: JSONFields) -> [String] {
        let queries = dns.object("queries")
        let count = { (name: String) in queries?.number(name) ?? 0 }
        var lines = [
            "  queries: \(count("all")), from the cache \(count("cacheHits")), from servers \(count("forwarded")), "
                + "blocked \(count("blocked")), local \(count("local")), failed \(count("failed"))"
        ]
        if let cache = dns.object("cache") {
            lines.append(
                "  cache: \(cache.number("answers") ?? 0) answers in \(cache.number("usedBytes") ?? 0) bytes of "
                    + "\(cache.number("bytes") ?? 0)")
        }
        if let names = localNames(dns) { lines.append("  own names: \(names)") }
        for upstream in dns.objects("upstreams") {
            var line = "  upstream \(upstream.string("name") ?? ""): \(upstream.boolean("down") ? "down" : "up")"
            line += ", \(upstream.string("transport") ?? "")"
            line += ", \(upstream.number("answers") ?? 0) answers, \(upstream.number("failures") ?? 0) failures"
            if let time = upstream.number("roundTripMicroseconds") { line += ", \(milliseconds(time)) ms" }
            if let reason = upstream.string("trustProblem") ?? upstream.string("lastFailure") {
                line += " (last: \(reason))"
            }
            lines.append(line)
        }
        return lines
    }

    /// A time in milliseconds, with one digit behind the point.
    private static func milliseconds(_ microseconds: UInt64) -> String {
        let tenths = (microseconds + 50) / 100
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// What the proxy knows by itself; nil when that is nothing.
    private static func localNames(_ dns: JSONFields) -> String? {
        let hosts = dns.object("hosts")
        let counts = [
            ("records", dns.number("records")), ("addresses of hosts files", hosts?.number("addresses")),
            ("names blocked by hosts files", hosts?.number("blocked")),
        ]
        let known = counts.compactMap { what, count in count.flatMap { $0 > 0 ? "\($0) \(what)" : nil } }
        return known.isEmpty ? nil : known.joined(separator: ", ")
    }

    private static func lines(_ peer: JSONFields, _ now: UInt64) -> [String] {
        var lines: [String] = []
        if let endpoint = peer.string("endpoint") {
            let name = peer.string("endpointName").flatMap { $0 == endpoint ? nil : " (\($0))" } ?? ""
            lines.append("  endpoint: \(endpoint)\(name)")
        } else if let name = peer.string("endpointName") {
            lines.append("  endpoint: \(name)")
        }
        lines += list("allowed ips", peer.strings("allowedIPs"))
        if let handshake = peer.number("lastHandshakeSeconds") {
            lines.append("  latest handshake: \(now > handshake ? now - handshake : 0) seconds ago")
        }
        if peer.string("handshake") == "given up" { lines.append("  handshake: nobody answers") }
        lines.append(
            "  transfer: \(peer.number("receivedBytes") ?? 0) bytes received, \(peer.number("sentBytes") ?? 0) bytes sent"
        )
        if let seconds = peer.number("persistentKeepaliveSeconds") {
            lines.append("  persistent keepalive: every \(seconds) seconds")
        }
        return lines
    }
}
