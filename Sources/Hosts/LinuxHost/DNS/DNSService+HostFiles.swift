internal import DNSMessage
internal import DNSProxy
internal import Provider

extension DNSService {
    /// Reads the hosts files of a configuration.
    static func readHosts(_ configuration: DNSConfiguration) throws(StartFailure) -> HostFiles {
        do throws(HostFileError) {
            return try HostFiles(reading: configuration.hostsFiles, at: HostClock.now())
        } catch { throw StartFailure("dns.hostsFile: \(error)") }
    }

    /// Gives the proxy what hosts files say.
    func adoptHosts(_ files: HostFiles) {
        hostFiles = files
        shared.withProxy { $0.setHosts(files.names) }
        guard !files.paths.isEmpty else { return }
        let counts = files.names.counts
        log.info(
            "hosts files: \(counts.addresses) addresses of names, \(counts.blocked) names blocked, \(counts.ignoredLines) lines ignored"
        )
    }

    /// Looks whether hosts files have changed.
    func lookAtHosts(at now: Instant) {
        switch hostFiles.look(at: now) {
        case .nothing: break
        case .changed: adoptHosts(hostFiles)
        case .unreadable(let error):
            log.error("what hosts files said before stays: \(private: error.path) \(public: error.problem.description)")
        }
    }

    /// Forgets what is known of a name and of all below it, or with nil all that is known.
    ///
    /// - Returns: How many answers are gone.
    func flushCache(of name: DomainName?) -> Int {
        shared.withProxy { $0.flushCache(of: name) }
    }
}
