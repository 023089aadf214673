import LinuxHost

extension CommandLineArguments {
    /// Reads what is behind `sluice dns`: `query`, a name, a type or none, and options; or `flush`.
    static func parseDNS(_ arguments: ArraySlice<String>) -> CommandLineArguments {
        if arguments.first == "flush" { return parseFlush(arguments.dropFirst()) }
        guard arguments.first == "query" else {
            return .wrong(
                "sluice dns takes query and what is to be asked, or flush: sluice dns query NAME [TYPE] --upstream URL")
        }
        var options = DNSQueryOptions()
        var words: [String] = []
        var given: Set<String> = []
        var rest = arguments.dropFirst()
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("-") else {
                words.append(argument)
                continue
            }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0]
            guard given.insert(name).inserted || name == "--pin" else { return .wrong("\(name) is there twice") }
            if let flag = flags[name] {
                guard parts.count == 1 else { return .wrong("\(name) takes no value") }
                flag(&options)
            } else if let option = valued[name] {
                guard let value = parts.count == 2 ? parts[1] : rest.popFirst(), !value.isEmpty else {
                    return .wrong("\(name) needs a value")
                }
                option(&options, value)
            } else {
                return .wrong("sluice dns query has no option \(name)")
            }
        }
        guard let name = words.first else { return .wrong("the name to ask about is missing") }
        guard words.count <= 2 else { return .wrong("one name and one type at a time") }
        guard given.contains("--upstream") else { return .wrong("--upstream is missing: the URL of the server to ask") }
        options.name = name
        if words.count == 2 { options.type = words[1] }
        return .query(options)
    }

    private static let flags: [String: @Sendable (inout DNSQueryOptions) -> Void] = [
        "--pin-only": { $0.isPinOnly = true },
        "--tcp": { $0.usesTCP = true },
        "--dnssec": { $0.dnssecOK = true },
        "--cd": { $0.checkingDisabled = true },
        "--no-rd": { $0.recursionDesired = false },
    ]

    private static let valued: [String: @Sendable (inout DNSQueryOptions, String) -> Void] = [
        "--upstream": { $0.upstream = $1 },
        "--address": { $0.address = $1 },
        "--ca": { $0.authorityFile = $1 },
        "--server-name": { $0.serverName = $1 },
        "--pin": { $0.pins.append($1) },
        "--method": { $0.method = $1 },
        "--timeout": { $0.timeout = $1 },
    ]
}
