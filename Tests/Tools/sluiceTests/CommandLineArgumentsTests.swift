import LinuxHost
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

    @Test func aCommandLineThatCannotBeStartsNothing() throws {
        try inTemporaryFolder { folder in
            let outcome = try runSluice(["check", "--confg", "x"], in: folder)
            #expect(outcome.status == 2)
            #expect(outcome.errors == "sluice: sluice check has no option --confg\nsluice: Try 'sluice --help'.\n")
        }
    }
}
