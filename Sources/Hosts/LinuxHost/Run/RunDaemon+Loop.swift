internal import PacketTunnel
internal import Provider

// The loop: what happens, in its order.
extension RunDaemon {
    /// Runs until the end. Returns the exit status: 0 when it was asked to end and all went well.
    ///
    /// - Throws: What the loop cannot go on with; what was done to the machine is undone then too.
    public consuming func run() throws(SystemCallError) -> Int32 {
        var events = EventBuffer(capacity: 64)
        do throws(SystemCallError) {
            clearLeftovers()
            perform(sequence.begin())
            // Without commands before it the tunnel starts at once.
            settle()
            while exitStatus == nil {
                try loop.wait(until: nextDeadline(), into: &events)
                interface?.shared.noteAwake()
                noteSleep()
                for index in 0..<events.count { handle(events[index]) }
                handleDeadlines()
                act()
            }
        } catch {
            close()
            throw error
        }
        close()
        return exitStatus ?? 1
    }

    private func nextDeadline() -> Instant? {
        let deadlines = [
            deviceDeadline(), provider.nextDeadline, observer.deadline, watchers.nextDeadline, metrics.nextDeadline,
        ]
        return deadlines.lazy.compactMap(\.self).min()
    }

    private mutating func handle(_ event: Event) {
        if interface?.handle(event, loop) ?? false { return }
        switch event.token {
        case Token.signals: readSignals()
        case Token.controlListener:
            control?.accept(loop)
            // Without the interface there is nothing that they could ask about.
            if isInterfaceClosed { control?.removeAll() }
        case Token.controlFile: _ = control?.isFileRemoved()
        case Token.messageListener: messages.accept(loop)
        case Token.resolution: readOutcomes()
        case Token.path: observer.readChanges()
        case Token.commands: commandsWent(commands.handleEnd(loop))
        case Token.queryNews: watchers.noteNews(at: HostClock.now())
        case let token where Token.metrics.contains(token): serveMetrics(event)
        case let token where messages.owns(token): note(messages.serve(token, loop))
        case let token: serveControl(token)
        }
        settle()
    }

    private mutating func handleDeadlines() {
        let now = HostClock.now()
        if observer.isDue(at: now) {
            restoreSettings()
            let path = currentPath()
            dns?.pathChanged(path)
            tell(.pathChanged(path))
        }
        if let deadline = provider.nextDeadline, deadline <= now { perform(provider.handleDeadlines(at: now)) }
        answerWatchers(at: now)
        metrics.handleDeadlines(at: now, loop)
        settle()
    }

    /// Lets the provider know when the machine slept: before anything else, since nothing of what was due then is late.
    private mutating func noteSleep() {
        guard let sleep = sleepDetector.sleep() else { return }
        let now = HostClock.now()
        log.info("the machine slept for \(sleep.nanoseconds / 1_000_000_000) s")
        let began = Instant(nanoseconds: now.nanoseconds - min(now.nanoseconds, sleep.nanoseconds))
        perform(provider.handle(.sleep, at: began))
        perform(provider.handle(.wake, at: now))
        dns?.machineSlept()
    }

    private mutating func readSignals() {
        while let signal = try? signals.next() {
            switch signal {
            case .hangUp: reload()
            case .interrupt, .terminate:
                if !sequence.isStopping { log.info("asked to end") }
                perform(sequence.stopRequested())
            }
        }
    }
}
