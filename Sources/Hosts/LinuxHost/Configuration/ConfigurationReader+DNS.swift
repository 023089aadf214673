internal import ByteAccess
internal import IPPacket
internal import PacketTunnel
internal import Provider
internal import WireGuard

extension ConfigurationReader {
    /// Reads `dns`; `tunnel` is what may bring upstreams of its own.
    static func dns(_ object: inout ConfigurationObject, _ tunnel: TunnelFileConfiguration?) -> DNSConfiguration {
        var dns = DNSConfiguration()
        dns.listen =
            object.field("listen")?.set { field in
                field.parsed("an address and a port such as 127.0.0.1:53 or [::1]:53") { AddressAndPort(parsing: $0) }
            } ?? []
        dns.secureListen = object.field("secureListen")?.object { secureListen(&$0, besides: dns.listen) }
        dns.workers = object.field("workers")?.integer(in: 1...16) ?? dns.workers
        let bootstrap = object.field("bootstrap")
        dns.bootstrap =
            bootstrap?.set { field in
                field.parsed("an address, with or without a port, such as 192.0.2.53:53") {
                    AddressAndPort(parsing: $0, defaultPort: 53)
                }
            } ?? []
        var names = KnownNames(what: "upstream")
        let system = object.field("system")
        dns.setsSystemResolver = system?.boolean() ?? dns.setsSystemResolver
        if dns.setsSystemResolver { names.admit(TunnelUpstreams(tunnel).names) }
        dns.upstreams =
            object.requiredField("upstreams")?.list("a list of one upstream at least", atLeast: 1) { field in
                field.object { upstream(&$0, names: &names, hasBootstrap: bootstrap != nil) }
            } ?? []
        var routed: Set<String> = []
        dns.routes =
            object.field("routes")?.list { field in
                field.object { route(&$0, names: names, routed: &routed) }
            } ?? []
        localNames(&object, &dns)
        dns.strategy = object.field("strategy")?.choice(DNSConfiguration.Strategy.self) ?? dns.strategy
        dns.timeout = object.field("timeoutSeconds")?.seconds(in: 0.1...120) ?? dns.timeout
        dns.clientIdle = object.field("clientIdleSeconds")?.seconds(in: 0.1...3600) ?? dns.clientIdle
        dns.mixesCase = object.field("mixCase")?.boolean() ?? dns.mixesCase
        dns.trustedForAD = object.field("trustAD")?.set { names.reference($0) } ?? []
        dns.dns64 = object.field("dns64")?.dns64() ?? dns.dns64
        dns.rebinding = object.field("rebinding")?.choice(DNSConfiguration.Rebinding.self) ?? dns.rebinding
        if dns.setsSystemResolver { system?.checkSystemResolver(dns) }
        dns.queryLog = object.field("queryLog")?.choice(DNSConfiguration.QueryLog.self) ?? dns.queryLog
        _ = object.field("cache")?.object { cache(&$0, &dns) }
        rewriting(&object, &dns)
        return dns
    }

    private static func cache(_ object: inout ConfigurationObject, _ dns: inout DNSConfiguration) {
        dns.cacheMaxBytes = object.field("maxBytes")?.integer(in: 0...1 << 30) ?? dns.cacheMaxBytes
        if let seconds = object.field("staleSeconds")?.integer(in: 0...604_800) {
            dns.staleLimit = .seconds(UInt64(seconds))
        }
        dns.prefetches = object.field("prefetch")?.boolean() ?? dns.prefetches
        let leastField = object.field("minTTL")
        let least = leastField?.integer(in: 0...3600) ?? 0
        let most = object.field("maxTTL")?.integer(in: 1...604_800) ?? 604_800
        guard least <= most else {
            leastField?.note(.conflict("is more than maxTTL"))
            return
        }
        dns.timeToLiveBounds = UInt32(least)...UInt32(most)
    }

    private static func route(
        _ object: inout ConfigurationObject, names: KnownNames, routed: inout Set<String>
    ) -> DNSConfiguration.Route? {
        let domains = object.requiredField("domains")?.list("a list of one domain at least", atLeast: 1) { field in
            guard let domain = field.domain() else { return nil as String? }
            guard routed.insert(domain).inserted else {
                field.note(.conflict("has a route already"))
                return nil
            }
            return domain
        }
        let upstreams = object.requiredField("upstreams")?.set("a list of one upstream at least", atLeast: 1) {
            names.reference($0)
        }
        let strategy = object.field("strategy")?.choice(DNSConfiguration.Strategy.self)
        guard let domains, let upstreams else { return nil }
        return DNSConfiguration.Route(domains: domains, upstreams: upstreams, strategy: strategy)
    }

    private static func upstream(
        _ object: inout ConfigurationObject, names: inout KnownNames, hasBootstrap: Bool
    ) -> DNSUpstreamConfiguration? {
        let name = names.define(object.requiredField("name"))
        let urlField = object.requiredField("url")
        var upstream = urlField?.parsed(
            "a URL such as https://dns.example/dns-query, tls://192.0.2.1, udp://192.0.2.1:53 or tcp://192.0.2.1",
            DNSUpstreamConfiguration.init(parsing:))
        let method = object.field("method")
        let chosenMethod = method?.choice(DNSUpstreamConfiguration.Method.self)
        let addressesField = object.field("addresses")
        let addresses = addressesField?.set { $0.address() } ?? []
        let trust = TLSTrust(&object, isOfUse: upstream.map { $0.transport.isEncrypted } ?? true, "tls and https URLs")
        if case .https(let path, _)? = upstream?.transport {
            upstream?.transport = .https(path: path, method: chosenMethod ?? .post)
        } else if upstream != nil {
            method?.note(.conflict("is of use with https URLs only"))
        }
        switch upstream?.host {
        case .address: addressesField?.note(.conflict("is of no use: the host of the url is an address"))
        case .name where addressesField == nil && !hasBootstrap:
            urlField?.note(.conflict("has the name of a host, so that addresses or dns.bootstrap are needed"))
        default: break
        }
        upstream?.addresses = addresses
        upstream?.trust = trust
        if let name { upstream?.name = name } else { return nil }
        return upstream
    }
}

extension DNSUpstreamConfiguration {
    /// The upstream that a URL names, without a name of its own.
    init?(parsing text: String) {
        // The URIs of RFC 8484 are templates; the variable says nothing that is not known.
        let template = "{?dns}"
        guard let url = URLReference(parsing: text.hasSuffix(template) ? String(text.dropLast(template.count)) : text)
        else {
            return nil
        }
        let (transport, port): (Transport, UInt16)
        switch url.scheme {
        case "udp": (transport, port) = (.udp, 53)
        case "tcp": (transport, port) = (.tcp, 53)
        case "tls": (transport, port) = (.tls, 853)
        case "https": (transport, port) = (.https(path: url.path.isEmpty ? "/" : url.path, method: .post), 443)
        default: return nil
        }
        guard url.scheme == "https" || url.path.isEmpty && !text.hasSuffix(template) else { return nil }
        self.init(name: "", transport: transport, host: url.host, port: url.port ?? port)
    }
}

extension DNSUpstreamConfiguration.Transport {
    /// True for those that go through TLS.
    public var isEncrypted: Bool {
        switch self {
        case .udp, .tcp: false
        case .tls, .https: true
        }
    }
}

extension TLSTrust {
    /// Reads the keys about TLS of an upstream or a proxy, which must not be there unless they are of use.
    init(_ object: inout ConfigurationObject, isOfUse: Bool, _ what: String) {
        self.init()
        let fields = ["serverName", "pins", "pinOnly", "caFile"].map { object.field($0) }
        guard isOfUse else {
            for field in fields { field?.note(.conflict("is of use with \(what) only")) }
            return
        }
        serverName = fields[0]?.parsed("the name that the certificate must have") {
            HostName.isValid($0) ? HostName.canonical($0) : nil
        }
        pins =
            fields[1]?.set("a list of two pins at least, so that a key can be replaced", atLeast: 2) { field in
                field.parsed("\"sha256/\" and 44 characters of base64", PublicKeyPin.init(parsing:))
            } ?? []
        isPinOnly = fields[2]?.boolean() ?? false
        if isPinOnly && fields[1] == nil { fields[2]?.note(.conflict("needs pins")) }
        authorityFile = fields[3]?.readableFile()
    }
}

extension PublicKeyPin {
    /// The pin that `text` spells.
    init?(parsing text: String) {
        guard text.hasPrefix("sha256/") else { return nil }
        let digits = Array(text.dropFirst("sha256/".count).utf8)
        guard let hash = KeyText.decode(digits.span.octets) else { return nil }
        sha256 = hash.withBytes { bytes in bytes.byteOffsets.map { bytes.uint8(at: $0) } }
    }
}

extension ConfigurationField {
    /// `"off"`, `"auto"` or a prefix.
    fileprivate func dns64() -> DNSConfiguration.DNS64? {
        parsed("\"off\", \"auto\" or an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits such as 64:ff9b::/96") { text in
            switch text {
            case "off": return .off
            case "auto": return .automatic
            default:
                guard let prefix = try? IPPrefix(parsing: text), case .v6(let address) = prefix.address,
                    [32, 40, 48, 56, 64, 96].contains(prefix.length),
                    // RFC 6052 §2.2: the bits 64 to 71 are zero.
                    address.low >> 56 == 0, (try? IPAddress(parsing: text.prefix { $0 != "/" })) == prefix.address
                else { return nil }
                return .prefix(prefix)
            }
        }
    }
}
