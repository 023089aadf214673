internal import PacketTunnel
internal import Provider

// What a daemon needs before it runs.
extension RunDaemon {
    /// Opens the interface and the sockets that the daemon is talked to by. Nothing else of the machine is touched before `run`.
    ///
    /// - Throws: `StartFailure` with what could not be had; what was opened before is closed.
    public init(_ loaded: LoadedConfiguration, log: Log) throws(StartFailure) {
        ignoreBrokenPipes()
        DescriptorLimit.raise()
        let configuration = loaded.value
        let name = configuration.interfaceName
        guard name != nil || configuration.dns != nil else {
            throw StartFailure("\(loaded.file): there is nothing to do: neither a device, nor a tunnel, nor dns")
        }
        // Signals come first: threads inherit which are blocked.
        let signals = try StartFailure.wrapping("cannot watch for signals") { () throws(SystemCallError) in
            try SignalDescriptor([.hangUp, .interrupt, .terminate])
        }
        let loop = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try EventLoop()
        }
        let queries = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try QueryInbox()
        }
        let resolution = try StartFailure.wrapping("cannot look names up") { () throws(SystemCallError) in
            try NameResolution()
        }
        let watchers = try StartFailure.wrapping("cannot watch for events") { () throws(SystemCallError) in
            try QueryWatchers()
        }
        var metrics = MetricsServer(tokens: Token.metrics)
        try metrics.listen(at: configuration.metrics.listen, loop)
        // Before what leaves traces on the machine: a port that is taken must not leave a control socket behind.
        let dns = try configuration.proxyConfiguration.map { (dns) throws(StartFailure) in
            try DNSService(dns, configuration.rules, inbox: queries, news: watchers.news, log: log)
        }
        let openings =
            if let name { try RunOpenings(name, configuration, queries, loop, log) } else {
                try RunOpenings(configuration)
            }
        try StartFailure.wrapping("cannot serve") { () throws(SystemCallError) in
            try loop.register(signals.descriptor, token: Token.signals, interest: .readable)
            try loop.register(resolution.wakeUp.descriptor, token: Token.resolution, interest: .readable)
            try loop.register(watchers.news.wakeUp.descriptor, token: Token.queryNews, interest: .readable)
            try openings.messages.register(with: loop)
            try dns?.start()
        }
        do throws(SystemCallError) {
            try openings.observer.netlink.register(with: loop, token: Token.path)
        } catch { throw StartFailure("cannot follow the network: \(error)") }
        file = loaded.file
        self.name = name
        self.log = log
        self.configuration = configuration
        self.signals = signals
        self.loop = loop
        interface = openings.interface
        channel = openings.channel
        control = openings.control
        self.dns = dns
        self.queries = queries
        messages = openings.messages
        self.watchers = watchers
        self.metrics = metrics
        self.resolution = resolution
        observer = openings.observer
        // Revisions of an earlier run are never those of this one.
        provider = PacketTunnelProvider(
            rememberedEndpoints: name.map { EndpointMemory(of: $0).read() } ?? [:],
            revision: HostClock.wallClock().seconds << 20)
        serveTunnel()
    }
}
