public import DNSProxy

/// `rules`: what is blocked by its name.
public struct RuleConfiguration: Equatable, Sendable {
    /// How a list is written.
    public enum ListFormat: String, CaseIterable, Sendable {
        /// To be found out from its lines.
        case auto
        /// An address and names on each line, as in /etc/hosts.
        case hosts
        /// A name on each line.
        case domains
        /// Rules such as `||ads.example^`.
        case adblock
    }

    /// A list to fetch.
    public struct List: Equatable, Sendable {
        /// Where it is: an http or https URL.
        public var url: String
        /// How it is written.
        public var format: ListFormat
    }

    /// The lists that the control process fetches and compiles.
    public var lists: [List] = []
    /// Rule files that were compiled before.
    public var files: [String] = []
    /// Rules about names in the configuration itself.
    public var inline: [NameRule] = []
    /// Rules about addresses in the configuration itself.
    public var inlineAddresses: [AddressRule] = []
    /// `blockedAnswer`: what who asks for a blocked name is told.
    public var blockedAnswer = BlockedAnswer.zero
}

/// `filter`: what is judged by its flow.
public struct FilterConfiguration: Equatable, Sendable {
    /// What becomes of a flow.
    public enum Action: String, CaseIterable, Sendable {
        /// It goes on.
        case allow
        /// It ends, and nobody is told.
        case drop
        /// It ends, and who began it is told.
        case reject
        /// It waits for a person's answer.
        case ask
    }

    /// A rule. The first that matches decides.
    public struct Rule: Equatable, Sendable {
        /// What becomes of the flow.
        public var action: Action
        /// The names of hosts, in lower case, that the rule is for, with everything below them; one at least.
        public var names: [String]
    }

    /// What becomes of flows that no rule matches.
    public var defaultAction = Action.allow
    /// What becomes of flows whose first bytes tell no name where a rule needs one.
    public var unreadableAction = Action.allow
    /// The rules in their order.
    public var rules: [Rule] = []
}

/// One of `proxies`: where flows can be sent instead.
public struct ProxyConfiguration: Equatable, Sendable {
    /// How the proxy is spoken to.
    public enum Kind: String, CaseIterable, Sendable {
        /// RFC 1928.
        case socks5
        /// CONNECT (RFC 9110 §9.3.6).
        case http
        /// CONNECT within TLS.
        case https
    }

    /// What the rest of the configuration calls the proxy. Never `tunnel`, `direct` or `drop`.
    public var name: String
    /// How the proxy is spoken to.
    public var kind: Kind
    /// The host of its URL.
    public var host: HostReference
    /// The port of its URL, or the kind's own.
    public var port: UInt16
    /// The path of a file with the user's name, a colon and the password on its first line; nil for a proxy that asks for
    /// none. Nobody but its owner could read it when the configuration was read.
    public var credentialsFile: String?
    /// Who an https proxy has to prove to be.
    public var trust = TLSTrust()
}

/// One of `apps`: which way the flows of an app take.
public struct AppRuleConfiguration: Equatable, Sendable {
    /// The way of a flow.
    public enum Way: Equatable, Sendable {
        /// Through the proxy of this name.
        case proxy(String)
        /// Through the WireGuard tunnel.
        case tunnel
        /// As if Sluice were not there.
        case direct
        /// To nowhere.
        case drop
    }

    /// The user that the app runs as.
    public var userID: UInt32?
    /// The control group that the app is in, or that is above its own: an absolute path in the hierarchy.
    public var controlGroup: String?
    /// The path of the app's program.
    public var executable: String?
    /// The way of what matches all that is not nil; everything when nothing is given.
    public var via: Way
}
