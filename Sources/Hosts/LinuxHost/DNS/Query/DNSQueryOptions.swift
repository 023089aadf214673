internal import DNSMessage
internal import IPPacket
internal import LDNSMessage
internal import PacketTunnel
internal import Provider

/// What a question and the server that it is put to are said by: texts as they stand in a command line.
public struct DNSQueryOptions: Equatable, Sendable {
    /// The name to ask about, as zone files have it.
    public var name = ""
    /// The type to ask for: a name of the registry, or TYPE and a number.
    public var type = "A"
    /// The URL of the server.
    public var upstream = ""
    /// Where the server is; nil to ask the machine's resolver, or when the URL has an address.
    public var address: String?
    /// The path of a file with the authorities to trust; nil for the system's.
    public var authorityFile: String?
    /// The name that the server's certificate must have; nil for the URL's host.
    public var serverName: String?
    /// Pins of keys, as configuration has them.
    public var pins: [String] = []
    /// True when nothing but the pins counts.
    public var isPinOnly = false
    /// How the question is put by HTTPS: post or get; nil for post.
    public var method: String?
    /// How many seconds all may take.
    public var timeout: String?
    /// True to ask a server of a udp URL by TCP.
    public var usesTCP = false
    /// True to ask for signatures (DO).
    public var dnssecOK = false
    /// True to ask for data that was not checked (CD).
    public var checkingDisabled = false
    /// True to ask the server to ask others (RD).
    public var recursionDesired = true

    /// A question for addresses, about nothing yet.
    public init() {}
}

/// Why no question can be made of the options: one line.
public struct ImpossibleDNSQuery: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong, and what was expected.
    public let description: String
}

/// A question and the server that it is put to.
public struct DNSQuery: Sendable {
    let name: DomainName
    let type: RecordType
    let timeout: Interval
    let options: DNSQueryOptions
    var upstream: DNSUpstreamConfiguration

    /// The question of the options.
    public init(_ options: DNSQueryOptions) throws(ImpossibleDNSQuery) {
        guard let name = try? DomainName(parsing: options.name) else {
            throw ImpossibleDNSQuery(description: "\"\(options.name)\" is not a name")
        }
        guard let type = RecordType(name: options.type) else {
            throw ImpossibleDNSQuery(
                description: "\"\(options.type)\" is no type of records: A, AAAA, HTTPS or TYPE65280")
        }
        guard let seconds = Double(options.timeout ?? "5"), 0.1...120 ~= seconds else {
            throw ImpossibleDNSQuery(description: "--timeout takes 0.1 to 120 seconds")
        }
        self.name = name
        self.type = type
        timeout = Interval(nanoseconds: UInt64(seconds * 1e9))
        self.options = options
        upstream = try Self.upstream(options)
    }

    private static func upstream(_ options: DNSQueryOptions) throws(ImpossibleDNSQuery) -> DNSUpstreamConfiguration {
        guard var upstream = DNSUpstreamConfiguration(parsing: options.upstream) else {
            throw ImpossibleDNSQuery(
                description: "--upstream takes a URL such as https://dns.example/dns-query, tls://192.0.2.1, "
                    + "udp://192.0.2.1:53 or tcp://192.0.2.1")
        }
        upstream.name = options.upstream
        if let text = options.address {
            guard case .name = upstream.host else {
                throw ImpossibleDNSQuery(description: "--address is of no use: the host of the URL is an address")
            }
            guard let address = try? IPAddress(parsing: text) else {
                throw ImpossibleDNSQuery(description: "\"\(text)\" is no address")
            }
            upstream.addresses = [address]
        }
        if options.usesTCP {
            guard upstream.transport == .udp || upstream.transport == .tcp else {
                throw ImpossibleDNSQuery(description: "--tcp is of use with udp URLs only")
            }
            upstream.transport = .tcp
        }
        if let text = options.method {
            guard case .https(let path, _) = upstream.transport else {
                throw ImpossibleDNSQuery(description: "--method is of use with https URLs only")
            }
            guard let method = DNSUpstreamConfiguration.Method(rawValue: text) else {
                throw ImpossibleDNSQuery(description: "--method takes post or get")
            }
            upstream.transport = .https(path: path, method: method)
        }
        upstream.trust = try trust(options, isEncrypted: upstream.transport.isEncrypted)
        return upstream
    }

    private static func trust(
        _ options: DNSQueryOptions, isEncrypted: Bool
    ) throws(ImpossibleDNSQuery) -> TLSTrust {
        var trust = TLSTrust()
        let isAsked =
            options.serverName != nil || options.authorityFile != nil || !options.pins.isEmpty || options.isPinOnly
        guard isEncrypted || !isAsked else {
            throw ImpossibleDNSQuery(
                description: "--ca, --server-name, --pin and --pin-only are of use with tls and https URLs only")
        }
        trust.authorityFile = options.authorityFile
        if let name = options.serverName {
            guard HostName.isValid(name[...]) else {
                throw ImpossibleDNSQuery(description: "\"\(name)\" is not the name of a host")
            }
            trust.serverName = HostName.canonical(name[...])
        }
        for text in options.pins {
            guard let pin = PublicKeyPin(parsing: text) else {
                throw ImpossibleDNSQuery(description: "--pin takes \"sha256/\" and 44 characters of base64")
            }
            if !trust.pins.contains(pin) { trust.pins.append(pin) }
        }
        guard trust.pins.count != 1 else {
            throw ImpossibleDNSQuery(description: "two different pins at least, so that a key can be replaced")
        }
        guard !options.isPinOnly || !trust.pins.isEmpty else {
            throw ImpossibleDNSQuery(description: "--pin-only needs pins")
        }
        trust.isPinOnly = options.isPinOnly
        return trust
    }
}
