internal import DNSMessage
internal import DNSProxy
internal import Provider

extension HostFiles {
    /// Reads the hosts files of a configuration.
    init(of configuration: DNSConfiguration) throws(StartFailure) {
        do throws(HostFileError) {
            self = try HostFiles(reading: configuration.hostsFiles, at: HostClock.now())
        } catch { throw StartFailure("dns.hostsFile: \(error)") }
    }
}

extension ProxyLoop {
    /// Gives the proxy what hosts files say.
    mutating func adoptHosts(_ files: HostFiles) {
        hostFiles = files
        shared.withProxy { $0.setHosts(files.names) }
        guard !files.paths.isEmpty else { return }
        let counts = files.names.counts
        log.info(
            "hosts files: \(counts.addresses) addresses of names, \(counts.blocked) names blocked, \(counts.ignoredLines) lines ignored"
        )
    }

    /// Looks whether hosts files have changed.
    mutating func lookAtHosts(at now: Instant) {
        switch hostFiles.look(at: now) {
        case .nothing: break
        case .changed: adoptHosts(hostFiles)
        case .unreadable(let error):
            log.error("what hosts files said before stays: \(private: error.path) \(public: error.problem.description)")
        }
    }
}
