import LinuxHost

extension CommandLineArguments {
    /// Reads what is behind `sluice dns flush`: a name or none, and the configuration.
    static func parseFlush(_ arguments: ArraySlice<String>) -> CommandLineArguments {
        var (name, config): (String?, String?)
        var rest = arguments
        while let argument = rest.popFirst() {
            if argument == "--config" || argument.hasPrefix("--config=") {
                let file = argument == "--config" ? rest.popFirst() : String(argument.dropFirst("--config=".count))
                guard let file, !file.isEmpty else { return .wrong("--config needs a file") }
                guard config == nil else { return .wrong("one configuration at a time") }
                config = file
            } else if argument.hasPrefix("-") {
                return .wrong("sluice dns flush has no option \(argument)")
            } else {
                guard name == nil else { return .wrong("one name at a time") }
                name = argument
            }
        }
        let path = config ?? LoadedConfiguration.defaultPath
        guard let name else { return .flush(name: nil, config: path) }
        guard let parsed = DNSFlushName(parsing: name) else { return .wrong("\"\(name)\" is not a name") }
        return .flush(name: parsed, config: path)
    }
}

/// `sluice dns flush [NAME] [--config FILE]`: returns the exit status.
func flushDNS(_ name: DNSFlushName?, config path: String) -> Int32 {
    do throws(ConfigurationErrors) {
        let socket = try LoadedConfiguration.controlSocket(of: path)
        do throws(StatusFailure) {
            var client = try StatusClient(path: socket)
            let count = try client.flushDNS(name)
            print(count == 1 ? "1 answer is forgotten" : "\(count) answers are forgotten")
            return 0
        } catch {
            complain(error.description)
        }
    } catch {
        for line in error.lines { StandardStreams.writeErrorLine(line) }
    }
    return 1
}
