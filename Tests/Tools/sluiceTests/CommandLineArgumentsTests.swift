import LinuxHost
import TestSupport
import Testing

@testable import sluice

struct CommandLineArgumentsTests {
    private static let defaultPath = "/etc/sluice/sluice.json5"

    private static func interface(_ name: String, _ isForeground: Bool) throws -> CommandLineArguments {
        .interface(try InterfaceName(name), isForeground: isForeground)
    }

    @Test(
        "Words mean commands, and interfaces behind -f",
        arguments: [
            ("wg0", try interface("wg0", false)), ("-f wg0", try interface("wg0", true)),
            ("wg0 -f", try interface("wg0", true)), ("--foreground wg0", try interface("wg0", true)),
            ("-f check", try interface("check", true)), ("-f run", try interface("run", true)),
            ("--foreground status", try interface("status", true)), ("checks", try interface("checks", false)),
            ("check", .check(config: defaultPath)), ("check --config a", .check(config: "a")),
            ("check --config=a=b", .check(config: "a=b")), ("run", .run(config: defaultPath)),
            ("run --config /a", .run(config: "/a")), ("run --config --config", .run(config: "--config")),
            ("status", .status(watch: false, json: false, config: defaultPath)),
            ("status --json --watch --config a", .status(watch: true, json: true, config: "a")),
            ("status --queries", .queries(watch: false, json: false, config: defaultPath)),
            ("status --watch --queries --json --config a", .queries(watch: true, json: true, config: "a")),
            ("run --queries", .wrong("sluice run has no option --queries")),
            ("", .help), ("--help", .help), ("-h", .help), ("check --help", .help), ("-f --help", .help),
            ("--version", .version),
            ("check a", .wrong("sluice check takes its file as --config a")),
            ("check --config", .wrong("--config needs a file")), ("check --config=", .wrong("--config needs a file")),
            ("check --config a --config b", .wrong("one configuration at a time")),
            ("check -f", .wrong("sluice check has no option -f")),
            ("run --watch", .wrong("sluice run has no option --watch")),
            ("-f", .wrong("the name of an interface is missing")), ("a b", .wrong("one interface at a time")),
            ("--config a", .wrong("unknown option --config")),
            (
                "a/b",
                .wrong(
                    "\"a/b\" cannot be the name of an interface: an interface name has no white space, control characters, "
                        + "'/', ':' or '%'")
            ),
        ] as [(String, CommandLineArguments)])
    func words(_ line: String, _ meaning: CommandLineArguments) {
        #expect(CommandLineArguments.parse(line.split(separator: " ").map(String.init)) == meaning)
    }

    private static func query(_ change: (inout DNSQueryOptions) -> Void) -> CommandLineArguments {
        var options = DNSQueryOptions()
        (options.name, options.upstream) = ("a.example", "udp://192.0.2.1")
        change(&options)
        return .query(options)
    }

    @Test(
        "Questions have a name, a type or none, and a server",
        arguments: [
            ("a.example --upstream udp://192.0.2.1", query { _ in }),
            ("--upstream=udp://192.0.2.1 a.example", query { _ in }),
            (
                "a.example MX --upstream udp://192.0.2.1 --dnssec --cd",
                query {
                    ($0.type, $0.dnssecOK, $0.checkingDisabled) = ("MX", true, true)
                }
            ),
            (
                "a.example --tcp --no-rd --timeout 0.5 --upstream udp://192.0.2.1",
                query {
                    ($0.usesTCP, $0.recursionDesired, $0.timeout) = (true, false, "0.5")
                }
            ),
            (
                "a.example --pin a --pin=b= --pin-only --upstream udp://192.0.2.1",
                query {
                    ($0.pins, $0.isPinOnly) = (["a", "b="], true)
                }
            ),
            (
                "a.example --ca c --server-name s --address 1 --method get --upstream udp://192.0.2.1",
                query {
                    ($0.authorityFile, $0.serverName, $0.address, $0.method) = ("c", "s", "1", "get")
                }
            ),
            ("", .wrong("the name to ask about is missing")),
            ("a.example", .wrong("--upstream is missing: the URL of the server to ask")),
            ("a b c --upstream x", .wrong("one name and one type at a time")),
            ("a --upstream", .wrong("--upstream needs a value")),
            ("a --upstream x --upstream y", .wrong("--upstream is there twice")),
            ("a --tcp=1 --upstream x", .wrong("--tcp takes no value")),
            ("a --quic --upstream x", .wrong("sluice dns query has no option --quic")),
        ] as [(String, CommandLineArguments)])
    func questions(_ line: String, _ meaning: CommandLineArguments) {
        #expect(CommandLineArguments.parse(["dns", "query"] + line.split(separator: " ").map(String.init)) == meaning)
    }

    @Test func aCommandLineThatCannotBeStartsNothing() throws {
        try inTemporaryFolder { folder in
            let outcome = try runSluice(["check", "--confg", "x"], in: folder)
            #expect(outcome.status == 2)
            #expect(outcome.errors == "sluice: sluice check has no option --confg\nsluice: Try 'sluice --help'.\n")
        }
    }
}
