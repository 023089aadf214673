import LinuxHost

/// What the command line asks for.
enum CommandLineArguments: Equatable {
    /// `sluice [-f] IFNAME`
    case interface(InterfaceName, isForeground: Bool)
    /// `--help`, or nothing at all.
    case help
    /// `--version`
    case version
    /// Something that cannot be: one line that says what and what was expected.
    case wrong(String)

    static let versionText = "0.1"

    static let helpText = """
        usage: sluice [-f | --foreground] IFNAME

        Creates the WireGuard interface IFNAME and serves it until it is deleted. Without -f the command returns
        once the interface can be configured, and goes on in the background.

        Configure the interface with wg(8), or let wg-quick(8) do all of it:
          WG_QUICK_USERSPACE_IMPLEMENTATION=sluice wg-quick up wg0

        options:
          -f, --foreground    stay in the foreground
          --help              print this text
          --version           print the version

        environment:
          LOG_LEVEL=silent|error|verbose    what is written to standard error; error when unset
          WG_PROCESS_FOREGROUND=1           as -f
          WG_TUN_FD=N                       take over the TUN device at descriptor N
          WG_UAPI_FD=N                      take over the listening control socket at descriptor N
          SLUICE_OFFLOADS=tun,udpSegment,udpGRO
                                            the kernel's offloads to use, or none; all of them when unset

        The interface ends, with exit status 0, on SIGINT and SIGTERM, when it is deleted (ip link delete IFNAME)
        and when its control socket /var/run/wireguard/IFNAME.sock is removed.

        """

    /// Reads the arguments after the program's name.
    static func parse(_ arguments: [String]) -> CommandLineArguments {
        if arguments.isEmpty || arguments.contains("--help") || arguments == ["-h"] || arguments == ["help"] {
            return .help
        }
        if arguments == ["--version"] || arguments == ["version"] { return .version }
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
