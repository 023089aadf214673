import Testing

/// A configuration that is wrong, and what is to be said about it. `FOLDER` stands for the folder that its files are in.
struct WrongConfiguration: Sendable, CustomTestStringConvertible {
    /// The text of `sluice.json5`.
    let text: String
    /// The text of `wg0.conf`, when there is one.
    let quick: String?
    /// The lines, each behind `FOLDER/sluice.json5:` unless it begins with `FOLDER`.
    let lines: [String]

    init(_ text: String, quick: String? = nil, _ lines: String...) {
        self.text = text
        self.quick = quick
        self.lines = lines.map { $0.hasPrefix("FOLDER") ? $0 : "FOLDER/sluice.json5:\($0)" }
    }

    var testDescription: String { text }
}

private let pin = "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
private let peer = "[Peer]\nPublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=\n"

/// Wrong as texts.
let wrongTexts: [WrongConfiguration] = [
    .init("", "1:1: expected a value"),
    .init("{\n  device: {\n", "3:1: expected a key or \"}\""),
    .init("{ log: { level: info } }", "1:17: expected a value; strings need quotes"),
    .init("{\n  log: {}\n  device: {}\n}", "3:3: expected \",\" or \"}\""),
    .init("{ log: { level: 'info } }\n", "1:17: expected the end of the string on the same line"),
    .init("{} {}", "1:4: expected nothing more behind the value"),
    .init("{ device: { mtu: 1_420 } }", "1:18: expected a number such as 25, -1.5, 2e3 or 0xff"),
    .init("/* {}", "1:1: expected \"*/\" at the end of the comment"),
    .init("[]", "1: expected an object: { … }"),
]

/// Wrong in the keys at the top, and in the small parts.
let wrongParts: [WrongConfiguration] = [
    .init(
        "{\n  dsn: {} }",
        "2: dsn: unknown key, did you mean \"dns\"?"),
    .init(
        "{ frobnicate: 1 }",
        "1: frobnicate: unknown key; there are device, tunnel, dns, rules, filter, proxies, apps, metrics, offloads, log, control"
    ),
    .init(
        "{ 'a\\nb': 1 }",
        "1: \"a\\nb\": unknown key; there are device, tunnel, dns, rules, filter, proxies, apps, "
            + "metrics, offloads, log, control"),
    .init("{\n log: {},\n log: {} }", "3: log: given twice, first on line 2"),
    .init("{ log: 'info' }", "1: log: expected an object: { … }"),
    .init("{ log: null }", "1: log: expected an object: { … }"),
    .init("{ log: { level: 'verbose' } }", "1: log.level: expected \"silent\", \"error\", \"info\" or \"debug\""),
    .init("{ log: { showPrivate: 1 } }", "1: log.showPrivate: expected true or false"),
    .init("{ log: { Level: 'info' } }", "1: log.Level: unknown key, did you mean \"level\"?"),
    .init("{ metrics: {} }", "1: metrics.listen: missing"),
    .init("{ metrics: { listen: [] } }", "1: metrics.listen: expected a list of one address at least"),
    .init(
        "{ metrics: { listen: ['localhost:9153'] } }",
        "1: metrics.listen[0]: expected an address and a port such as 127.0.0.1:9153 or [::1]:9153"),
    .init(
        "{ metrics: {\n listen: ['127.0.0.1:1',\n '127.0.0.1:1'] } }",
        "3: metrics.listen[1]: is in the list already"),
    .init("{ offloads: { tun: 'yes' } }", "1: offloads.tun: expected true or false"),
    .init("{ offloads: { udpGro: true } }", "1: offloads.udpGro: unknown key, did you mean \"udpGRO\"?"),
    .init(
        "{ control: { socket: 'control.sock' } }", "1: control.socket: expected an absolute path of at most 107 bytes"),
    .init(
        "{ control: { socket: '/\(String(repeating: "x", count: 107))' } }",
        "1: control.socket: expected an absolute path of at most 107 bytes"),
    .init(
        "{ device: { name: 'a b' } }",
        "1: device.name: an interface name has no white space, control characters, '/', ':' or '%'"),
    .init("{ device: { name: 'abcdefghijklmnop' } }", "1: device.name: an interface name has at most 15 bytes"),
    .init("{ device: { name: 7 } }", "1: device.name: expected the name of an interface"),
    .init("{ device: { mtu: 67 } }", "1: device.mtu: expected a whole number from 68 to 65535"),
    .init("{ device: { mtu: 1420.5 } }", "1: device.mtu: expected a whole number from 68 to 65535"),
    .init(
        "{ device: {\n addresses: ['fd00::1/64'],\n mtu: 1279 } }",
        "3: device.mtu: expected at least 1280 because the device has an IPv6 address"),
    .init("{ device: { addresses: '10.0.0.1/24' } }", "1: device.addresses: expected a list"),
    .init(
        "{ device: { addresses: [\n '10.0.0.1/24',\n '10.0.0.256/24',\n '10.0.0.1/24' ] } }",
        "3: device.addresses[1]: expected an address and a prefix length such as 10.8.0.2/24 or fd00:8::2/64",
        "4: device.addresses[2]: is in the list already"),
    .init(
        "{ device: { includedRoutes: ['10.0.0.0'] } }",
        "1: device.includedRoutes[0]: expected a prefix such as 10.0.0.0/8 or fd00::/8"),
    .init(
        "{ device: { includedRoutes: ['10.1.0.0/8'] } }",
        "1: device.includedRoutes[0]: expected a prefix without bits behind its length: 10.0.0.0/8"),
    .init(
        "{ device: { includedRoutes: ['::/0'], excludedRoutes: ['::/0'] } }",
        "1: device.excludedRoutes[0]: is in includedRoutes too"),
]

/// Wrong in `dns`. Each has one good upstream to be told from.
let wrongDNS: [WrongConfiguration] = [
    .init("{\n dns: {} }", "2: dns.upstreams: missing"),
    .init("{ dns: { upstreams: [] } }", "1: dns.upstreams: expected a list of one upstream at least"),
    .init("{ dns: { upstreams: [{}] } }", "1: dns.upstreams[0].name: missing", "1: dns.upstreams[0].url: missing"),
    dns("listen: ['127.0.0.1']", "2: dns.listen[0]: expected an address and a port such as 127.0.0.1:53 or [::1]:53"),
    dns("listen: ['[::1]:0']", "2: dns.listen[0]: expected an address and a port such as 127.0.0.1:53 or [::1]:53"),
    dns(
        "bootstrap: ['dns.example']",
        "2: dns.bootstrap[0]: expected an address, with or without a port, such as 192.0.2.53:53"),
    dns("timeoutSeconds: 0", "2: dns.timeoutSeconds: expected a number of seconds from 0.1 to 120.0"),
    dns("clientIdleSeconds: '20'", "2: dns.clientIdleSeconds: expected a number of seconds from 0.1 to 3600.0"),
    dns("timeoutSeconds: NaN", "2: dns.timeoutSeconds: expected a number of seconds from 0.1 to 120.0"),
    dns(
        "dns64: '64:ff9b::/97'",
        "2: dns.dns64: expected \"off\", \"auto\" or an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits such as 64:ff9b::/96"
    ),
    dns("rebinding: 'deny'", "2: dns.rebinding: expected \"block\" or \"allow\""),
    dns("ipv6: true", "2: dns.ipv6: expected \"allow\" or \"block\""),
    dns("ipv6: 'block', dns64: 'auto'", "2: dns.ipv6: leaves nothing for dns64 to do"),
    dns("https: { ech: 'off' }", "2: dns.https.ech: expected \"keep\" or \"remove\""),
    dns("https: { removeALPN: 'h3' }", "2: dns.https.removeALPN: expected a list"),
    dns("https: { removeALPN: [''] }", "2: dns.https.removeALPN[0]: expected a protocol such as h3"),
    dns("https: { removeALPN: ['h3', 'h3'] }", "2: dns.https.removeALPN[1]: is in the list already"),
    dns("https: { hint: 'keep' }", "2: dns.https.hint: unknown key, did you mean \"hints\"?"),
    dns("clientSubnet: 'forward'", "2: dns.clientSubnet: expected \"pass\" or \"remove\""),
    dns("cache: { maxBytes: -1 }", "2: dns.cache.maxBytes: expected a whole number from 0 to 1073741824"),
    dns("cache: 0", "2: dns.cache: expected an object: { … }"),
    dns("cache: { staleSeconds: 604801 }", "2: dns.cache.staleSeconds: expected a whole number from 0 to 604800"),
    dns("cache: { minTTL: 3601 }", "2: dns.cache.minTTL: expected a whole number from 0 to 3600"),
    dns("cache: { minTTL: 60, maxTTL: 59 }", "2: dns.cache.minTTL: is more than maxTTL"),
    dns("cache: { prefetch: 1 }", "2: dns.cache.prefetch: expected true or false"),
    dns("strategy: 'random'", "2: dns.strategy: expected \"ordered\", \"fastest\" or \"parallel\""),
    dns(
        "routes: [{ domains: ['corp.example'], upstreams: ['good'], strategy: 1 }]",
        "2: dns.routes[0].strategy: expected \"ordered\", \"fastest\" or \"parallel\""),
    dns("trustAD: ['goood']", "2: dns.trustAD[0]: no upstream is called \"goood\", did you mean \"good\"?"),
    dns(
        "routes: [{ domains: ['corp.example'], upstreams: ['corp'] }]",
        "2: dns.routes[0].upstreams[0]: no upstream is called \"corp\""),
    dns(
        "routes: [{ domain: ['corp.example'], upstreams: ['good'] }]",
        "2: dns.routes[0].domains: missing", "2: dns.routes[0].domain: unknown key, did you mean \"domains\"?"),
    dns(
        "routes: [{ domains: ['*.corp'], upstreams: ['good'] }]",
        "2: dns.routes[0].domains[0]: expected a name such as corp.example, which stands for all below it too"),
    dns(
        "routes: [{ domains: ['a.example', 'A.example.'], upstreams: ['good'] }]",
        "2: dns.routes[0].domains[1]: has a route already"),
    upstream(
        "name: 'x', url: 'dns.example'",
        "2: dns.upstreams[1].url: expected a URL such as https://dns.example/dns-query, tls://192.0.2.1, udp://192.0.2.1:53 or "
            + "tcp://192.0.2.1"),
    upstream(
        "name: 'x', url: 'quic://192.0.2.1'",
        "2: dns.upstreams[1].url: expected a URL such as https://dns.example/dns-query, tls://192.0.2.1, udp://192.0.2.1:53 or "
            + "tcp://192.0.2.1"),
    upstream(
        "name: 'x', url: 'https://user:word@192.0.2.1/'",
        "2: dns.upstreams[1].url: expected a URL such as https://dns.example/dns-query, tls://192.0.2.1, udp://192.0.2.1:53 or "
            + "tcp://192.0.2.1"),
    upstream(
        "name: 'x', url: 'tls://dns.example'",
        "2: dns.upstreams[1].url: has the name of a host, so that addresses or dns.bootstrap are needed"),
    upstream(
        "name: 'x', url: 'tls://192.0.2.1', addresses: ['192.0.2.2']",
        "2: dns.upstreams[1].addresses: is of no use: the host of the url is an address"),
    upstream(
        "name: 'x', url: 'tls://dns.example', addresses: ['dns2.example']",
        "2: dns.upstreams[1].addresses[0]: expected an address such as 192.0.2.1 or 2001:db8::1"),
    upstream("name: 'good', url: 'udp://192.0.2.1'", "2: dns.upstreams[1].name: another upstream is called \"good\""),
    upstream(
        "name: 'x y', url: 'udp://192.0.2.1'",
        "2: dns.upstreams[1].name: expected a name of letters, digits, hyphens and underscores, 63 at most"),
    upstream(
        "name: 'x', url: 'udp://192.0.2.1', method: 'get'", "2: dns.upstreams[1].method: is of use with https URLs only"
    ),
    upstream(
        "name: 'x', url: 'udp://192.0.2.1', serverName: 'a'",
        "2: dns.upstreams[1].serverName: is of use with tls and https URLs only"),
    upstream(
        "name: 'x', url: 'https://192.0.2.1', method: 'put'", "2: dns.upstreams[1].method: expected \"post\" or \"get\""
    ),
    upstream(
        "name: 'x', url: 'tls://192.0.2.1', pins: ['\(pin)']",
        "2: dns.upstreams[1].pins: expected a list of two pins at least, so that a key can be replaced"),
    upstream(
        "name: 'x', url: 'tls://192.0.2.1', pins: ['\(pin)', '\(pin)']",
        "2: dns.upstreams[1].pins[1]: is in the list already"),
    upstream(
        "name: 'x', url: 'tls://192.0.2.1', pins: ['\(pin)', 'sha256/AAAA']",
        "2: dns.upstreams[1].pins[1]: expected \"sha256/\" and 44 characters of base64"),
    upstream("name: 'x', url: 'tls://192.0.2.1', pinOnly: true", "2: dns.upstreams[1].pinOnly: needs pins"),
    upstream(
        "name: 'x', url: 'tls://192.0.2.1', caFile: '/nonexistent/ca.pem'",
        "2: dns.upstreams[1].caFile: /nonexistent/ca.pem cannot be read: No such file or directory"),
]

private func dns(_ keys: String, _ lines: String...) -> WrongConfiguration {
    WrongConfiguration(
        "{ dns: { upstreams: [{ name: 'good', url: 'udp://192.0.2.1' }],\n \(keys) } }", quick: nil, allOf: lines)
}

private func upstream(_ keys: String, _ lines: String...) -> WrongConfiguration {
    WrongConfiguration(
        "{ dns: { upstreams: [{ name: 'good', url: 'udp://192.0.2.1' },\n { \(keys) }] } }", quick: nil, allOf: lines)
}

extension WrongConfiguration {
    fileprivate init(_ text: String, quick: String?, allOf lines: [String]) {
        self.text = text
        self.quick = quick
        self.lines = lines.map { "FOLDER/sluice.json5:\($0)" }
    }
}

/// Wrong in what judges flows and sends them elsewhere.
let wrongFlows: [WrongConfiguration] = [
    .init("{ rules: { lists: ['https://lists.example/ads.txt'] } }", "1: rules.lists[0]: expected an object: { … }"),
    .init(
        "{ rules: { lists: [{ url: 'ftp://lists.example/ads.txt' }] } }",
        "1: rules.lists[0].url: expected an https or http URL"),
    .init(
        "{ rules: { lists: [{ url: 'https://a.example/', format: 'rpz' }] } }",
        "1: rules.lists[0].format: expected \"auto\", \"hosts\", \"domains\" or \"adblock\""),
    .init("{ rules: { files: ['ads.rules'] } }", "1: rules.files[0]: expected an absolute path"),
    .init(
        "{ rules: { inline: [''] } }",
        "1: rules.inline[0]: expected a rule such as ||ads.example^, @@||good.example^, 198.51.100.0/24 "
            + "or @@198.51.100.7"),
    .init(
        "{ rules: { inline: ['||ads.example^$important'] } }",
        "1: rules.inline[0]: expected a rule such as ||ads.example^, @@||good.example^, 198.51.100.0/24 "
            + "or @@198.51.100.7"),
    .init(
        "{ rules: { blockedAnswer: 'NXDOMAIN' } }",
        "1: rules.blockedAnswer: expected \"zero\", \"nxdomain\", \"nodata\" or \"refused\""),
    .init("{ filter: { default: 'block' } }", "1: filter.default: expected \"allow\", \"drop\", \"reject\" or \"ask\""),
    .init(
        "{ filter: { rules: [{ action: 'drop' },\n { names: [] }] } }", "1: filter.rules[0].names: missing",
        "2: filter.rules[1].action: missing", "2: filter.rules[1].names: expected a list of one name at least"),
    .init(
        "{ proxies: [{ name: 'a', url: 'socks4://127.0.0.1' }] }",
        "1: proxies[0].url: expected a URL such as socks5://127.0.0.1:1080, http://proxy.example:3128 or https://proxy.example"
    ),
    .init(
        "{ proxies: [{ name: 'direct', url: 'socks5://127.0.0.1' }] }",
        "1: proxies[0].name: \"direct\" is what apps call something else"),
    .init(
        "{ proxies: [{ name: 'a', url: 'socks5://127.0.0.1' },\n { name: 'a', url: 'http://127.0.0.1', pins: [] }] }",
        "2: proxies[1].name: another proxy is called \"a\"", "2: proxies[1].pins: is of use with https URLs only"),
    .init(
        "{ proxies: [{ name: 'a', url: 'socks5://127.0.0.1', credentials: 'password' }] }",
        "1: proxies[0].credentials: expected an absolute path or credential:NAME"),
    .init("{ apps: [{ via: 'direct' }] }", "1: apps[0].match: missing"),
    .init("{ apps: [{ match: {} }] }", "1: apps[0].via: missing"),
    .init("{ apps: [{ match: {}, via: 'tunnel' }] }", "1: apps[0].via: expected a tunnel in this file"),
    .init(
        "{ proxies: [{ name: 'corp', url: 'socks5://127.0.0.1' }],\n apps: [{ match: {}, via: 'crop' }] }",
        "2: apps[0].via: no proxy is called \"crop\", did you mean \"corp\"?"),
    .init(
        "{ apps: [{ match: { uid: -1 }, via: 'direct' }] }",
        "1: apps[0].match.uid: expected a whole number from 0 to 4294967294"),
    .init(
        "{ apps: [{ match: { user: 'x' }, via: 'direct' }] }",
        "1: apps[0].match.user: unknown key; there are uid, cgroup, executable"),
    .init(
        "{ apps: [{ match: { cgroup: 'user.slice', executable: 'curl' }, via: 'direct' }] }",
        "1: apps[0].match.cgroup: expected a control group such as /user.slice/app.slice",
        "1: apps[0].match.executable: expected an absolute path"),
]

/// Wrong in the tunnel's file, or on the way to it.
let wrongTunnels: [WrongConfiguration] = [
    .init(
        "{ tunnel: { config: 'FOLDER/wg0.conf' }, dns: { listen: ['127.0.0.1:53'], system: true,\n"
            + "upstreams: [{ name: 'tunnel', url: 'udp://192.0.2.1' }] } }", quick: "[Interface]\nDNS = 10.8.0.1\n",
        "2: dns.upstreams[0].name: another upstream is called \"tunnel\""),
    .init(
        "{ dns: { listen: ['127.0.0.1:54'],\n system: true, bootstrap: ['127.0.0.54'],\n"
            + "upstreams: [{ name: 'a', url: 'udp://127.0.0.53' }] } }",
        "2: dns.system: needs an address with port 53 in dns.listen: the machine's resolver asks at no other port",
        "2: dns.system: cannot be with systemd-resolved (127.0.0.53) as an upstream or in dns.bootstrap: it would ask here"
    ),
    .init("{ tunnel: {} }", "1: tunnel.config: missing"),
    .init("{ tunnel: { config: 'wg0.conf' } }", "1: tunnel.config: expected an absolute path or credential:NAME"),
    .init(
        "{ tunnel: { config: 'credential:../x' } }", "1: tunnel.config: expected an absolute path or credential:NAME"),
    .init(
        "{ tunnel: { config: 'credential:wg0' } }",
        "1: tunnel.config: expected $CREDENTIALS_DIRECTORY, which systemd sets where a unit has LoadCredential="),
    .init(
        "{ tunnel: { config: 'FOLDER/wg1.conf' } }",
        "1: tunnel.config: FOLDER/wg1.conf cannot be read: No such file or directory"),
    .init("{ tunnel: { config: 'FOLDER' } }", "1: tunnel.config: FOLDER cannot be read: Is a directory"),
    .init(
        "{ tunnel: { config: 'FOLDER/wg0.conf' },\n log: { levle: 'info' } }",
        quick: "[Interface]\nAdress = 10.0.0.1/24\nMTU = small\n" + peer + "PersistentKeepalive = never\n",
        "2: log.levle: unknown key, did you mean \"level\"?",
        "FOLDER/wg0.conf:2: Adress: unknown key, did you mean Address?",
        "FOLDER/wg0.conf:3: MTU: expected a number from 68 to 65535",
        "FOLDER/wg0.conf:6: PersistentKeepalive: expected \"off\" or a number from 0 to 65535"),
    .init(
        "{ tunnel: { config: 'FOLDER/wg0.conf' } }",
        quick: "[Interface]\nPrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBm=\n",
        "FOLDER/wg0.conf:2: PrivateKey: expected a key of 32 bytes in base64: 44 characters, the last of them \"=\""),
    .init(
        "{ tunnel: { config: 'FOLDER/wg0.conf' },\n device: { mtu: 1000 } }",
        quick: "[Interface]\nAddress = fd00::1/64\n",
        "2: device.mtu: expected at least 1280 because the device has an IPv6 address"),
]

let wrongConfigurations = wrongTexts + wrongParts + wrongDNS + wrongFlows + wrongTunnels
