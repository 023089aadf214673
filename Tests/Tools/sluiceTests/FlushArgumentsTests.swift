import LinuxHost
import Testing

@testable import sluice

struct FlushArgumentsTests {
    @Test func aNameOrNoneAndAConfigurationOrTheUsualOne() {
        let usual = LoadedConfiguration.defaultPath
        let name = DNSFlushName(parsing: "example.com")
        for (line, meaning) in [
            ("", CommandLineArguments.flush(name: nil, config: usual)),
            ("example.com", .flush(name: name, config: usual)),
            ("--config a.json5", .flush(name: nil, config: "a.json5")),
            ("Example.com. --config=a.json5", .flush(name: name, config: "a.json5")),
            ("a b", .wrong("one name at a time")), ("a..b", .wrong("\"a..b\" is not a name")),
            ("--config", .wrong("--config needs a file")), ("--config=", .wrong("--config needs a file")),
            ("--config a --config b", .wrong("one configuration at a time")),
            ("--all", .wrong("sluice dns flush has no option --all")),
        ] {
            let arguments = ["dns", "flush"] + line.split(separator: " ").map(String.init)
            #expect(CommandLineArguments.parse(arguments) == meaning)
        }
    }
}
