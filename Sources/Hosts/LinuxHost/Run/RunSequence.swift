/// In which order the tunnel's commands run, and the tunnel comes up and goes down: as with wg-quick.
///
/// ```
///   begin ─▶ PreUp ─▶ starting ─▶ PostUp ─▶ up ─▶ PreDown ─▶ stopping ─▶ PostDown ─▶ ended
///              │          │         │        ▲       ▲                       ▲
///              │ failed   │ failed  │ failed │       │ a stop                │
///              └──────────│─────────┼────────┘       │                       │
///                         │         └── stopping ────┘                       │
///                         └── closing ───────────────────────────────────────┘
/// ```
///
/// - A command that fails on the way up ends the start, and what was done is undone. One that fails on the way down is told, and
///   the way goes on: a tunnel that cannot be taken down is worse.
/// - A stop during a command waits for the command's end; one that runs long is ended by a second stop.
/// - A tunnel that ends by itself is closed as one whose start failed, after the command that runs: there is one at a time.
struct RunSequence {
    /// Which commands are to run.
    enum Commands: Equatable {
        case preUp
        case postUp
        case preDown
        case postDown
    }

    /// What the daemon is to do next.
    enum Action: Equatable {
        /// Run these commands and say how that ended.
        case run(Commands)
        /// End the command that runs.
        case endCommand
        /// Start the tunnel and say how that ended.
        case startTunnel
        /// Say that everything is up.
        case announceReady
        /// Stop the tunnel and say when it is down.
        case stopTunnel
        /// Let go of the interface, which disappears; the commands after it come next.
        case closeInterface
        /// End with this exit status.
        case end(status: Int32)
    }

    private enum Stage {
        case new
        case preUp
        case starting
        case postUp
        case up
        case preDown
        case stopping
        case postDown
        case ended
    }

    private var stage = Stage.new
    /// True once a stop was asked for.
    private(set) var isStopping = false
    /// True once the tunnel ended by itself.
    private var isLost = false
    private var status: Int32 = 0

    /// True from the time that everything is up until it is to go down.
    var isUp: Bool { stage == .up }

    /// Begins.
    mutating func begin() -> [Action] {
        stage = .preUp
        return [.run(.preUp)]
    }

    /// The commands ended; false when one of them failed.
    mutating func commandsEnded(_ succeeded: Bool) -> [Action] {
        switch stage {
        case .preUp:
            if !succeeded { status = 1 }
            if succeeded, !isStopping {
                stage = .starting
                return [.startTunnel]
            }
            return close()
        case .postUp:
            if !succeeded { status = 1 }
            if isLost { return close() }
            if succeeded, !isStopping {
                stage = .up
                return [.announceReady]
            }
            // A start that failed runs no commands on its way back but those after the interface.
            return succeeded ? goDown() : stop()
        case .preDown: return isLost ? close() : stop()
        case .postDown:
            stage = .ended
            return [.end(status: status)]
        case .new, .starting, .up, .stopping, .ended: return []
        }
    }

    /// The tunnel is up, or could not come up.
    mutating func tunnelStarted(_ succeeded: Bool) -> [Action] {
        guard stage == .starting else { return [] }
        if succeeded {
            stage = .postUp
            return [.run(.postUp)]
        }
        // A start that was stopped ends with the stop.
        if isStopping {
            stage = .stopping
            return []
        }
        status = 1
        return close()
    }

    /// The tunnel is down after it was to be stopped.
    mutating func tunnelStopped(_ isClean: Bool) -> [Action] {
        guard stage == .stopping else { return [] }
        if !isClean { status = 1 }
        return close()
    }

    /// The tunnel ended by itself.
    mutating func tunnelLost() -> [Action] {
        switch stage {
        case .postUp, .up, .preDown, .stopping:
            if !isStopping { status = 1 }
            isStopping = true
            isLost = true
            return stage == .up || stage == .stopping ? close() : []
        case .new, .preUp, .starting, .postDown, .ended: return []
        }
    }

    /// Somebody wants it to end.
    mutating func stopRequested() -> [Action] {
        let isRepeated = isStopping
        isStopping = true
        switch stage {
        case .new:
            stage = .ended
            return [.end(status: 0)]
        case .preUp, .postUp, .preDown, .postDown: return isRepeated ? [.endCommand] : []
        case .starting: return isRepeated ? [] : [.stopTunnel]
        case .up: return goDown()
        case .stopping, .ended: return []
        }
    }

    private mutating func goDown() -> [Action] {
        stage = .preDown
        return [.run(.preDown)]
    }

    private mutating func stop() -> [Action] {
        stage = .stopping
        return [.stopTunnel]
    }

    private mutating func close() -> [Action] {
        stage = .postDown
        return [.closeInterface, .run(.postDown)]
    }
}
