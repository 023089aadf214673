internal import PacketTunnel
internal import Provider
internal import WireGuard

// The commands around the tunnel, and the configuration when it changes.
extension RunDaemon {
    /// Does what comes next.
    mutating func perform(_ actions: [RunSequence.Action]) {
        for action in actions { perform(action) }
    }

    private mutating func perform(_ action: RunSequence.Action) {
        switch action {
        case .run(let which): run(which)
        case .endCommand: commands.terminate()
        case .startTunnel:
            let path = currentPath()
            dns?.pathChanged(path)
            tell(.pathChanged(path))
            tell(.start(makeRequest(for: configuration)))
        case .announceReady:
            wasUp = true
            log.info("everything is up")
            ServiceNotification.ready.send()
            CodePages.release()
        case .stopTunnel:
            ServiceNotification.stopping.send()
            saveConfiguration()
            rememberEndpoints()
            tell(.stop(.userInitiated))
        case .closeInterface: closeInterface()
        case .end(let status): exitStatus = status
        }
    }

    // MARK: Commands

    private mutating func run(_ which: RunSequence.Commands) {
        let hooks = configuration.tunnel?.quick.hooks ?? QuickConfiguration.Hooks()
        let list =
            switch which {
            case .preUp: hooks.preUp
            case .postUp: hooks.postUp
            case .preDown: hooks.preDown
            case .postDown: hooks.postDown
            }
        let expanded = list.map { QuickConfiguration.Hooks.expanded($0, interfaceName: name?.string ?? "") }
        if !expanded.isEmpty { log.verbose("running \(expanded.count) commands") }
        commandsWent(commands.start(expanded, loop))
    }

    /// Takes notice of how the commands are doing.
    mutating func commandsWent(_ progress: ShellCommands.Progress) {
        guard case .ended(let failure) = progress else { return }
        if let failure { log.error("a command of the tunnel's file failed: \(public: Self.text(status: failure))") }
        perform(sequence.commandsEnded(failure == nil))
    }

    private static func text(status: Int32) -> String {
        let signal = status & 0x7F
        return signal == 0 ? "exit status \(status >> 8 & 0xFF)" : "ended by signal \(signal)"
    }

    /// Keeps where the names of peers led to for a run that cannot look them up.
    private func rememberEndpoints() {
        guard let name else { return }
        let endpoints = provider.rememberedEndpoints
        let memory = EndpointMemory(of: name)
        guard endpoints != memory.read() else { return }
        do {
            try memory.write(endpoints)
        } catch {
            log.error("cannot remember where the peers are: \(error)")
        }
    }

    // MARK: The file

    /// `SaveConfig`: what the device has now goes into the tunnel's file.
    private mutating func saveConfiguration() {
        guard wasUp, let tunnel = configuration.tunnel, tunnel.quick.savesConfiguration,
            let current = withDeviceIfAny({ SavedConfiguration.current(tunnel.quick, of: $0) }),
            current != tunnel.quick
        else { return }
        do {
            try SavedConfiguration.write(current, to: tunnel.path)
            log.info("the tunnel's file was saved")
        } catch {
            log.error("cannot save the tunnel's file: \(error)")
        }
    }

    /// Reads the configuration again, and changes what is different. A wrong one changes nothing.
    mutating func reload() {
        guard sequence.isUp else {
            return log.error("the configuration is not read again while the tunnel goes up or down")
        }
        let loaded: LoadedConfiguration
        do throws(ConfigurationErrors) {
            loaded = try LoadedConfiguration.read(file)
        } catch {
            log.error(
                "the configuration has \(error.lines.count) errors, and nothing is changed; sluice check tells them")
            for line in error.lines { log.error("\(private: line)") }
            return
        }
        guard loaded.unsupportedParts.isEmpty else {
            return log.error("the configuration asks for what cannot be done yet, and nothing is changed")
        }
        let new = loaded.value
        if new.interfaceName != name || new.controlSocket != configuration.controlSocket
            || new.offloads != configuration.offloads || new.log != configuration.log
            || dns != nil && new.dns != nil && new.dns?.workers != dns?.workers
        {
            log.error(
                "the interface's name, the control socket, the offloads, the log and dns.workers change at the next start only"
            )
        }
        releaseResolver(before: new)
        do throws(StartFailure) {
            try metrics.listen(at: new.metrics.listen, loop)
            try changeProxy(to: new)
        } catch {
            try? metrics.listen(at: configuration.metrics.listen, loop)
            putAgain(as: configuration)
            return log.error("the configuration was not taken over: \(private: error.description)")
        }
        let request = makeRequest(for: new)
        candidates.append((request.id, new))
        tell(.reload(request))
    }

    /// Makes the DNS proxy what a configuration says: starts it, changes it or ends it. It succeeds whole or changes nothing.
    private mutating func changeProxy(to new: DaemonConfiguration) throws(StartFailure) {
        switch (dns, new.proxyConfiguration) {
        case (nil, nil): break
        case (let service?, let wanted?): try service.reload(wanted, new.rules)
        case (let service?, nil):
            service.stop()
            dns = nil
        case (nil, let wanted?):
            let service = try DNSService(wanted, new.rules, inbox: queries, news: watchers.news, log: log)
            try StartFailure.wrapping("cannot start the DNS proxy") { () throws(SystemCallError) in
                try service.start()
            }
            dns = service
            service.pathChanged(currentPath())
            serveTunnel()
        }
        answerAllWatchers()
    }

    /// A reload is done, or changed nothing.
    mutating func completeReload(
        _ id: PacketTunnelProvider.RequestID, _ result: Result<ReloadSummary, TunnelFailure>
    ) {
        let index = candidates.firstIndex { $0.id == id }
        let candidate = index.map { candidates.remove(at: $0).configuration }
        // The provider knows nothing of tables and resolvers, and peers may be where routes lead to now.
        switch result {
        case .success(let summary):
            if let candidate { configuration = candidate }
            putAgain(as: configuration)
            log.info(
                "the configuration was read again: \(summary.addedPeers) peers added, \(summary.removedPeers) removed, \(summary.changedPeers) changed"
            )
        case .failure(let failure):
            log.error("the configuration was not taken over: \(failure)")
            // What was under way with the old one was fine; so it can be had again.
            if candidate != nil {
                try? metrics.listen(at: configuration.metrics.listen, loop)
                try? changeProxy(to: configuration)
            }
            putAgain(as: configuration)
        }
    }
}
