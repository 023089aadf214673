import Glibc
import LinuxHost

StandardStreams.openMissing()
switch CommandLineArguments.parse(Array(CommandLine.arguments.dropFirst())) {
case .help:
    print(CommandLineArguments.helpText, terminator: "")
case .version:
    print("sluice \(CommandLineArguments.versionText)")
case .wrong(let problem):
    complain(problem)
    complain("Try 'sluice --help'.")
    exit(2)
case .interface(let name, let isForeground):
    exit(runInterface(named: name, isForeground: isForeground))
case .check(let config):
    exit(checkConfiguration(config))
case .run(let config):
    exit(runDaemon(config))
case .query(let options):
    exit(queryDNS(options))
case .flush(let name, let config):
    exit(flushDNS(name, config: config))
case .queries(let watch, let json, let config):
    exit(showQueries(watch: watch, json: json, config: config))
case .status(let watch, let json, let config):
    exit(showStatus(watch: watch, json: json, config: config))
}
