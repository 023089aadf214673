internal import DNSProxy
internal import IPPacket
internal import JSON5
internal import PacketTunnel

extension ConfigurationReader {
    /// Reads `rules`.
    static func rules(_ object: inout ConfigurationObject) -> RuleConfiguration {
        var rules = RuleConfiguration()
        rules.lists = object.field("lists")?.list { field in field.object { list(&$0) } } ?? []
        rules.files = object.field("files")?.set { $0.path() } ?? []
        let inline = object.field("inline")?.elements() ?? []
        // Rules about names are large, and there may be many: room for them is made once.
        rules.inline.reserveCapacity(inline.count)
        for field in inline { field.inlineRule(&rules) }
        rules.blockedAnswer =
            object.field("blockedAnswer")?.choice(BlockedAnswer.self) ?? rules.blockedAnswer
        return rules
    }

    private static func list(_ object: inout ConfigurationObject) -> RuleConfiguration.List? {
        let url =
            object.requiredField("url")?.parsed("an https or http URL") { text in
                guard let url = URLReference(parsing: text), ["https", "http"].contains(url.scheme) else { return nil }
                return text
            } as String?
        let format = object.field("format")?.choice(RuleConfiguration.ListFormat.self)
        return url.map { RuleConfiguration.List(url: $0, format: format ?? .auto) }
    }

    /// Reads `filter`.
    static func filter(_ object: inout ConfigurationObject) -> FilterConfiguration {
        var filter = FilterConfiguration()
        filter.defaultAction = object.field("default")?.choice(FilterConfiguration.Action.self) ?? filter.defaultAction
        filter.unreadableAction =
            object.field("unreadable")?.choice(FilterConfiguration.Action.self) ?? filter.unreadableAction
        filter.rules = object.field("rules")?.list { field in field.object { filterRule(&$0) } } ?? []
        return filter
    }

    private static func filterRule(_ object: inout ConfigurationObject) -> FilterConfiguration.Rule? {
        let action = object.requiredField("action")?.choice(FilterConfiguration.Action.self)
        let names = object.requiredField("names")?.set("a list of one name at least", atLeast: 1) { $0.domain() }
        guard let action, let names else { return nil }
        return FilterConfiguration.Rule(action: action, names: names)
    }

    /// Reads one of `proxies`.
    static func proxy(_ object: inout ConfigurationObject, names: inout KnownNames) -> ProxyConfiguration? {
        let nameField = object.requiredField("name")
        let name = names.define(nameField)
        if let name, reservedWays.contains(name) {
            nameField?.note(.conflict("\"\(name)\" is what apps call something else"))
        }
        var proxy = object.requiredField("url")?.parsed(
            "a URL such as socks5://127.0.0.1:1080, http://proxy.example:3128 or https://proxy.example",
            ProxyConfiguration.init(parsing:))
        if let field = object.field("credentials"), let (path, rule) = field.secretFile() {
            do throws(ConfigurationFileError) {
                try ConfigurationFile.check(path, rule: rule)
                proxy?.credentialsFile = path
            } catch {
                field.note(.conflict("\(path) \(error)"))
            }
        }
        let trust = TLSTrust(&object, isOfUse: proxy.map { $0.kind == .https } ?? true, "https URLs")
        proxy?.trust = trust
        if let name { proxy?.name = name } else { return nil }
        return proxy
    }

    private static let reservedWays = ["tunnel", "direct", "drop"]

    /// Reads one of `apps`.
    static func app(
        _ object: inout ConfigurationObject, proxies: KnownNames, hasTunnel: Bool
    ) -> AppRuleConfiguration? {
        var rule = AppRuleConfiguration(via: .drop)
        let hasMatch = object.requiredField("match")?.object { match -> Bool? in
            rule.userID = match.field("uid")?.integer(in: 0...4_294_967_294).map { UInt32($0) }
            rule.controlGroup = match.field("cgroup")?.parsed("a control group such as /user.slice/app.slice") { path in
                let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
                return path.hasPrefix("/") && !parts.contains("") && !parts.contains("..") && !parts.contains(".")
                    ? path : nil
            }
            rule.executable = match.field("executable")?.path()
            return true
        }
        guard let field = object.requiredField("via") else { return nil }
        switch field.value.content {
        case .string("direct"): rule.via = .direct
        case .string("drop"): rule.via = .drop
        case .string("tunnel"):
            rule.via = .tunnel
            if !hasTunnel { field.note(.conflict("expected a tunnel in this file")) }
        default:
            guard let name = proxies.reference(field) else { return nil }
            rule.via = .proxy(name)
        }
        return hasMatch == true ? rule : nil
    }
}

extension ProxyConfiguration {
    /// The proxy that a URL names, without a name of its own.
    fileprivate init?(parsing text: String) {
        guard let url = URLReference(parsing: text), let kind = Kind(rawValue: url.scheme),
            url.path.isEmpty || url.path == "/"
        else { return nil }
        let port: UInt16 =
            switch kind {
            case .socks5: 1080
            case .http: 80
            case .https: 443
            }
        self.init(name: "", kind: kind, host: url.host, port: url.port ?? port)
    }
}

extension ConfigurationField {
    /// Reads a rule about names or addresses.
    fileprivate func inlineRule(_ rules: inout RuleConfiguration) {
        let expectation = "a rule such as ||ads.example^, @@||good.example^, 198.51.100.0/24 or @@198.51.100.7"
        guard let text = text(expectation) else { return }
        if let rule = AddressRule(parsing: text) {
            rules.inlineAddresses.append(rule)
        } else if let rule = try? NameRule(parsing: text) {
            rules.inline.append(rule)
        } else {
            note(.expected(expectation))
        }
    }
}
