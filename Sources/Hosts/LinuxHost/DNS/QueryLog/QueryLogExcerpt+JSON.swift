internal import ByteAccess
internal import DNSMessage
internal import DNSProxy
internal import IPPacket
internal import LDNSMessage
internal import Provider

extension QueryLogExcerpt {
    /// The part of the log for a program.
    ///
    /// - Parameters:
    ///   - now: The time of the clock that the log's times are of.
    ///   - wallClock: The time of day at that time.
    func json(now: Instant, wallClock: WallClockTime) -> JSONText {
        .object([
            ("next", .number(next)), ("lost", .number(lostCount)), ("more", .boolean(hasMore)),
            (
                "queries",
                .array(
                    queries.map { query in
                        let age = now.since(query.entry.answeredAt)
                        return json(query.entry, query.name, answeredAt: wallClock.earlier(by: age))
                    })
            ),
        ])
    }

    private func json(_ entry: QueryLogEntry, _ name: [UInt8], answeredAt time: WallClockTime) -> JSONText {
        let hidden = "<private>"
        let shown = detail == .full ? Self.text(ofName: name) : hidden
        let upstream = entry.upstream.flatMap { id in
            upstreamNames.indices.contains(id.index) ? upstreamNames[id.index] : nil
        }
        return .object([
            ("time", .string(time.text)),
            ("client", .optional(detail == .full ? entry.client?.description : hidden)),
            ("transport", .string("\(entry.transport)")), ("tunnel", .boolean(entry.isTunnelled)),
            ("name", .optional(shown)), ("type", .optional(entry.type?.name)),
            ("result", .string("\(entry.result)")), ("rule", .optional(rule(of: entry))),
            ("upstream", .optional(upstream)), ("merged", .boolean(entry.isMerged)),
            ("code", .string(entry.code.name)), ("extendedError", .optional(entry.error?.rawValue)),
            ("microseconds", .number(entry.taken.nanoseconds / 1_000)),
        ])
    }

    /// What in the configuration led to the result; nil where nothing did.
    private func rule(of entry: QueryLogEntry) -> String? {
        if entry.result == .rebinding { return "dns.rebinding" }
        guard let place = entry.ruleSource.map({ Int($0.rawValue) }), ruleSourceNames.indices.contains(place) else {
            return nil
        }
        return ruleSourceNames[place]
    }

    /// A name in presentation form; nil for none.
    private static func text(ofName bytes: [UInt8]) -> String? {
        guard !bytes.isEmpty, let view = try? DomainNameView(checking: bytes.span.octets, at: 0) else { return nil }
        return view.presentation
    }
}

extension ResponseCode {
    /// The name of the IANA registry, or the number.
    var name: String {
        switch rawValue {
        case 0: "NOERROR"
        case 1: "FORMERR"
        case 2: "SERVFAIL"
        case 3: "NXDOMAIN"
        case 4: "NOTIMP"
        case 5: "REFUSED"
        case 6: "YXDOMAIN"
        case 7: "YXRRSET"
        case 8: "NXRRSET"
        case 9: "NOTAUTH"
        case 10: "NOTZONE"
        case 16: "BADVERS"
        default: "\(rawValue)"
        }
    }
}
