import LinuxHost

/// What the command line asks for.
enum CommandLineArguments: Equatable {
    /// `sluice [-f] IFNAME`
    case interface(InterfaceName, isForeground: Bool)
    /// `sluice run [--config FILE]`
    case run(config: String)
    /// `sluice check [--config FILE]`
    case check(config: String)
    /// `sluice status [--watch] [--json] [--config FILE]`
    case status(watch: Bool, json: Bool, config: String)
    /// `sluice status --queries [--watch] [--json] [--config FILE]`
    case queries(watch: Bool, json: Bool, config: String)
    /// `sluice dns query NAME [TYPE] --upstream URL`
    case query(DNSQueryOptions)
    /// `sluice dns flush [NAME] [--config FILE]`
    case flush(name: DNSFlushName?, config: String)
    /// `--help`, or nothing at all.
    case help
    /// `--version`
    case version
    /// Something that cannot be: one line that says what and what was expected.
    case wrong(String)

    static let versionText = ProgramVersion.text

    static let helpText = """
        usage: sluice [-f | --foreground] IFNAME
               sluice run [--config FILE]
               sluice check [--config FILE]
               sluice status [--queries] [--watch] [--json] [--config FILE]
               sluice dns query NAME [TYPE] --upstream URL [OPTIONS]
               sluice dns flush [NAME] [--config FILE]

        IFNAME creates the WireGuard interface of this name and serves it until it is deleted. Without -f the command
        returns once the interface can be configured, and goes on in the background.

        Configure the interface with wg(8), or let wg-quick(8) do all of it:
          WG_QUICK_USERSPACE_IMPLEMENTATION=sluice wg-quick up wg0

        commands:
          run       does what a configuration says, in the foreground
          check     says what is wrong with a configuration: file, line, key and what was expected
          status    says what a running daemon does
          dns query asks a DNS server, as the daemon would, and prints the answer
          dns flush has a running daemon forget the answers that it keeps: all, or those about NAME and all below it

        options:
          -f, --foreground    stay in the foreground; with it a word that is a command is the name of an interface
          --config FILE       the configuration; \(LoadedConfiguration.defaultPath) unless given
          --queries           print how the last DNS queries were answered instead
          --watch             go on, and say every change
          --json              print JSON, a line for each status or query
          --help              print this text
          --version           print the version

        options of dns query:
          --upstream URL      the server: https://HOST/PATH, tls://HOST, udp://HOST or tcp://HOST, with a port or without
          --address IP        where the server is; the machine's resolver is asked unless given
          --ca FILE           the authorities to trust instead of the system's
          --server-name NAME  the name that the certificate must have; the host of the URL unless given
          --pin sha256/PIN    a key that may be in the certificates; two at least
          --pin-only          nothing but the pins counts
          --method post|get   how the question is put by HTTPS; post unless given
          --timeout SECONDS   how long all may take; 5 unless given
          --tcp               ask the server of a udp URL by TCP
          --dnssec            ask for signatures
          --cd                ask for what was not checked
          --no-rd             do not ask the server to ask others

        environment, with IFNAME:
          LOG_LEVEL=silent|error|verbose    what is written to standard error; error when unset
          WG_PROCESS_FOREGROUND=1           as -f
          WG_TUN_FD=N                       take over the TUN device at descriptor N
          WG_UAPI_FD=N                      take over the listening control socket at descriptor N
          SLUICE_WORKERS=N                  threads that move packets; one for each processor up to 4 when unset
          SLUICE_OFFLOADS=tun,udpSegment,udpGRO
                                            the kernel's offloads to use, or none; all of them when unset

        The interface ends, with exit status 0, on SIGINT and SIGTERM, when it is deleted (ip link delete IFNAME)
        and when its control socket /var/run/wireguard/IFNAME.sock is removed.

        exit status: 0; 1 for what failed, a wrong configuration or a server that is not trusted for one; 2 for a command
        line that cannot be; dns query: 9 when no answer came

        """

    /// Reads the arguments after the program's name.
    static func parse(_ arguments: [String]) -> CommandLineArguments {
        if arguments.isEmpty || arguments.contains("--help") || arguments == ["-h"] || arguments == ["help"] {
            return .help
        }
        if arguments == ["--version"] || arguments == ["version"] { return .version }
        switch arguments[0] {
        case "dns": return parseDNS(arguments.dropFirst())
        case "run", "check", "status": return parseCommand(arguments[0], arguments.dropFirst())
        default: return parseInterface(arguments)
        }
    }

    /// Reads the options of a command.
    private static func parseCommand(_ command: String, _ arguments: ArraySlice<String>) -> CommandLineArguments {
        var config: String?
        var (watch, json, queries) = (false, false, false)
        var rest = arguments
        while let argument = rest.popFirst() {
            switch argument {
            case "--watch" where command == "status": watch = true
            case "--json" where command == "status": json = true
            case "--queries" where command == "status": queries = true
            case "--config",
                _ where argument.hasPrefix("--config="):
                let file = argument == "--config" ? rest.popFirst() : String(argument.dropFirst("--config=".count))
                guard let file, !file.isEmpty else { return .wrong("--config needs a file") }
                guard config == nil else { return .wrong("one configuration at a time") }
                config = file
            case let option where option.hasPrefix("-"): return .wrong("sluice \(command) has no option \(option)")
            default: return .wrong("sluice \(command) takes its file as --config \(argument)")
            }
        }
        let path = config ?? LoadedConfiguration.defaultPath
        return switch command {
        case "run": .run(config: path)
        case "check": .check(config: path)
        case _ where queries: .queries(watch: watch, json: json, config: path)
        default: .status(watch: watch, json: json, config: path)
        }
    }

    /// Reads the name of an interface and the options around it.
    private static func parseInterface(_ arguments: [String]) -> CommandLineArguments {
        var isForeground = false
        var names: [String] = []
        for argument in arguments {
            switch argument {
            case "-f", "--foreground": isForeground = true
            case let option where option.hasPrefix("-"): return .wrong("unknown option \(option)")
            default: names.append(argument)
            }
        }
        guard names.count == 1 else {
            return .wrong(names.isEmpty ? "the name of an interface is missing" : "one interface at a time")
        }
        do {
            return .interface(try InterfaceName(names[0]), isForeground: isForeground)
        } catch {
            return .wrong("\"\(names[0])\" cannot be the name of an interface: \(error)")
        }
    }
}
