public import DNSMessage
public import DNSProxy
public import IPPacket
public import Provider

/// `dns`: the DNS proxy.
public struct DNSConfiguration: Equatable, Sendable {
    /// `rebinding`: what becomes of answers that would send a name of the outside to an address of the inside.
    public enum Rebinding: String, CaseIterable, Sendable {
        case block, allow
    }

    /// `privateRelay`: what becomes of the names of iCloud Private Relay.
    public enum PrivateRelay: String, CaseIterable, Sendable {
        case allow, block
    }

    /// `singleLabels`: where addresses of names of one label are looked for.
    public enum SingleLabels: String, CaseIterable, Sendable {
        /// Nowhere but in what the configuration has.
        case local
        /// At upstreams, as all others.
        case forward
    }

    /// `dns64`: whether IPv6 addresses are made for hosts that have none (RFC 6147).
    public enum DNS64: Equatable, Sendable {
        case off
        /// With the prefix that the network says (RFC 7050).
        case automatic
        /// With this prefix, of a length of RFC 6052 §2.2.
        case prefix(IPPrefix)
    }

    /// `queryLog`: what is kept of how queries were answered, in memory alone.
    public enum QueryLog: String, CaseIterable, Sendable {
        /// Nothing.
        case off
        /// What says nothing about who asked and for which name.
        case `private`
        /// All, with names and clients.
        case full
    }

    /// `strategy`: which of several upstreams are asked first.
    public enum Strategy: String, CaseIterable, Sendable {
        case ordered, fastest, parallel
    }

    /// Which upstreams are asked about a domain and what is below it.
    public struct Route: Equatable, Sendable {
        /// Domains in lower case, without a dot at the end.
        public var domains: [String]
        /// The names of upstreams, in the order to try them.
        public var upstreams: [String]
        /// Which of them are asked first; nil for what `dns.strategy` says.
        public var strategy: Strategy?
    }

    /// Where questions are taken, by UDP and TCP.
    public var listen: [AddressAndPort] = []
    /// Where questions are taken by TLS and HTTPS; nil for nowhere.
    public var secureListen: SecureListenConfiguration?
    /// How many threads take questions: one for two processors, up to four.
    public var workers = max(1, WorkerCount.standard / 2)
    /// Who is asked, in the order to try them; one at least. Their names differ.
    public var upstreams: [DNSUpstreamConfiguration] = []
    /// Plain resolvers that are asked for the addresses of upstreams that are known by name only.
    public var bootstrap: [AddressAndPort] = []
    /// Which domains go to which upstreams. No domain is in two.
    public var routes: [Route] = []
    /// The names of the upstreams that are asked about what has no route. Nil for those that no route names, or for all when each
    /// is named by one.
    public var defaultUpstreams: [String]?
    /// Records of names that nobody is asked about.
    public var records: [ResourceRecord] = []
    /// `hostsFile`: the paths of files in the form of /etc/hosts.
    public var hostsFiles: [String] = []
    /// Domains, in lower case and without a dot at the end, whose names may lead to addresses of the inside.
    public var rebindingAllowed: [String] = []
    /// What becomes of the names of iCloud Private Relay.
    public var privateRelay = PrivateRelay.allow
    /// Where addresses of names of one label are looked for.
    public var singleLabels = SingleLabels.local
    /// Which of several upstreams are asked first.
    public var strategy = Strategy.ordered
    /// How long a question may take.
    public var timeout = Interval.seconds(5)
    /// How long a client's connection is kept that asks nothing.
    public var clientIdle = Interval.seconds(20)
    /// True when the case of letters in questions is drawn at random, and the answer's is compared.
    public var mixesCase = false
    /// The names of upstreams whose word that data is authentic is passed on.
    public var trustedForAD: [String] = []
    /// Whether IPv6 addresses are made.
    public var dns64 = DNS64.off
    /// What becomes of answers with addresses of the inside.
    public var rebinding = Rebinding.block
    /// What is taken out of answers.
    public var rewriting = AnswerRewriting()
    /// True when what a client says about its network reaches upstreams (RFC 7871).
    public var passesClientSubnet = false
    /// True when the machine's resolver is pointed here, and back in the end.
    public var setsSystemResolver = false
    /// What is kept of how queries were answered.
    public var queryLog = QueryLog.private
    /// How many bytes of answers are kept; 0 for none.
    public var cacheMaxBytes = 2_097_152
    /// True when answers that many want are asked for anew before their time is over.
    public var prefetches = false
    /// For how long after it expired an answer may be given when no upstream answers; zero for never.
    public var staleLimit = Interval.seconds(86_400)
    /// The bounds of the TTLs of answers that have what was asked for, in seconds.
    public var timeToLiveBounds: ClosedRange<UInt32> = 0...604_800
}

/// A server that is asked.
public struct DNSUpstreamConfiguration: Equatable, Sendable {
    /// How the server is asked.
    public enum Transport: Equatable, Sendable {
        /// By UDP, and by TCP where an answer is too long.
        case udp
        /// By TCP.
        case tcp
        /// By TLS (RFC 7858).
        case tls
        /// By HTTPS (RFC 8484), at a path that begins with a slash.
        case https(path: String, method: Method)
    }

    /// How a question is put by HTTPS.
    public enum Method: String, CaseIterable, Sendable {
        case post, get
    }

    /// What the rest of the configuration calls the server.
    public var name: String
    /// How the server is asked.
    public var transport: Transport
    /// The host of its URL.
    public var host: HostReference
    /// The port of its URL, or the transport's own.
    public var port: UInt16
    /// Where the host is, without asking anybody. Empty where it is an address itself.
    public var addresses: [IPAddress] = []
    /// Who the server has to prove to be.
    public var trust = TLSTrust()
}
