import LinuxHost

/// `sluice check --config FILE`: returns the exit status.
func checkConfiguration(_ path: String) -> Int32 {
    do throws(ConfigurationErrors) {
        let configuration = try LoadedConfiguration.read(path)
        // What is right but not done yet is said, and is no fault of the file.
        for part in configuration.unsupportedParts { StandardStreams.writeErrorLine(part.description) }
        print("\(path): fine")
        return 0
    } catch {
        for line in error.lines { StandardStreams.writeErrorLine(line) }
        return 1
    }
}
