import LinuxHost
import Provider

/// `sluice run --config FILE`: returns the exit status.
func runDaemon(_ path: String) -> Int32 {
    let loaded: LoadedConfiguration
    do throws(ConfigurationErrors) {
        loaded = try LoadedConfiguration.read(path)
    } catch {
        for line in error.lines { StandardStreams.writeErrorLine(line) }
        return 1
    }
    if !loaded.unsupportedParts.isEmpty {
        for part in loaded.unsupportedParts { StandardStreams.writeErrorLine(part.description) }
        return 1
    }
    do throws(StartFailure) {
        let daemon = try RunDaemon(loaded, log: Log(loaded.value))
        do throws(SystemCallError) {
            return try daemon.run()
        } catch {
            complain("\(error)")
        }
    } catch {
        complain(error.description)
    }
    return 1
}
