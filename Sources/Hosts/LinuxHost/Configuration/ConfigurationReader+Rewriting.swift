internal import DNSProxy

extension ConfigurationReader {
    /// What is said about things that can be kept or removed.
    private enum Fate: String, CaseIterable {
        case keep, remove
    }

    /// What is said about things that can be let through or blocked.
    private enum Passage: String, CaseIterable {
        case allow, block
    }

    /// What is said about things that can be passed on or removed.
    private enum Forwarding: String, CaseIterable {
        case pass, remove
    }

    /// Reads what `dns` says about what is taken out of answers and queries: `https`, `ipv6` and `clientSubnet`.
    static func rewriting(_ object: inout ConfigurationObject, _ dns: inout DNSConfiguration) {
        var rewriting = AnswerRewriting()
        _ = object.field("https")?.object { serviceBindings(&$0, &rewriting) }
        let ipv6 = object.field("ipv6")
        rewriting.blocksIPv6 = ipv6?.choice(Passage.self) == .block
        if rewriting.blocksIPv6, dns.dns64 != .off { ipv6?.note(.conflict("leaves nothing for dns64 to do")) }
        dns.rewriting = rewriting
        dns.passesClientSubnet = object.field("clientSubnet")?.choice(Forwarding.self) == .pass
    }

    private static func serviceBindings(_ object: inout ConfigurationObject, _ rewriting: inout AnswerRewriting) {
        rewriting.removesECH = object.field("ech")?.choice(Fate.self) == .remove
        rewriting.removesHints = object.field("hints")?.choice(Fate.self) == .remove
        rewriting.removedProtocols =
            object.field("removeALPN")?.set { field in
                // An identifier has a length of one byte (RFC 7301 §3.1).
                field.parsed("a protocol such as h3") { $0.utf8.count < 256 ? $0 : nil }
            } ?? []
    }
}
