internal import DNSMessage

/// What the proxy itself knows about a name, from standards and without asking anybody.
enum SpecialName: UInt8, BitwiseCopyable {
    /// `localhost` and below: the machine itself (RFC 6761 §6.3).
    case loopback
    /// There is nothing: `invalid`, `onion` and below (RFC 6761 §6.4, RFC 7686 §2). No route changes that.
    case absent
    /// There is nothing unless a route says where to ask: `test`, `local`, `alt`, `home.arpa`, and the addresses of private networks
    /// (RFC 6761 §6.2, RFC 6762 §22.1, RFC 9476 §2, RFC 8375 §4, RFC 6303 §4, RFC 7793).
    case absentUnlessRouted
    /// `resolver.arpa` and below: there is nothing of any type, so that clients do not go past the proxy (RFC 9462 §6).
    case empty
    /// `use-application-dns.net`: browsers look there whether names are filtered.
    case canary
    /// The names of iCloud Private Relay, which does without where they do not exist, as Apple says to operators of networks.
    case privateRelay

    /// All of them with the names that they hold for.
    static let all = NameTable(names.flatMap { special, texts in texts.compactMap { named($0, special) } })

    private static func named(_ text: String, _ special: SpecialName) -> (name: DomainName, value: SpecialName)? {
        (try? DomainName(parsing: text)).map { ($0, special) }
    }

    private static let names: [(SpecialName, [String])] = [
        (.loopback, ["localhost"]),
        (.absent, ["invalid", "onion"]),
        (.absentUnlessRouted, ["test", "local", "alt", "home.arpa"] + reverseZones),
        (.empty, ["resolver.arpa"]),
        (.canary, ["use-application-dns.net"]),
        (.privateRelay, ["mask.icloud.com", "mask-h2.icloud.com"]),
    ]

    /// The zones of addresses that nobody outside can say anything about (RFC 6303 §4.1 to §4.5, RFC 7793 §4.1).
    private static let reverseZones: [String] = {
        var zones = [
            "10", "168.192", "0", "127", "254.169", "2.0.192", "100.51.198", "113.0.203", "255.255.255.255",
        ]
        zones += (16...31).map { "\($0).172" }
        zones += (64...127).map { "\($0).100" }
        zones = zones.map { $0 + ".in-addr.arpa" }
        let zeros = String(repeating: "0.", count: 31)
        zones += ["0." + zeros, "1." + zeros].map { $0 + "ip6.arpa" }
        zones += ["d.f", "8.e.f", "9.e.f", "a.e.f", "b.e.f", "8.b.d.0.1.0.0.2"].map { $0 + ".ip6.arpa" }
        return zones
    }()
}
