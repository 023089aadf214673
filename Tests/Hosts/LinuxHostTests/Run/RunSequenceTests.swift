import TestSupport
import Testing

@testable import LinuxHost

@Suite struct RunSequenceTests {
    private typealias Action = RunSequence.Action

    /// What a sequence does when it is told these things one after the other, after it has begun.
    private func actions(_ steps: (inout RunSequence) -> [Action]...) -> [[Action]] {
        var sequence = RunSequence()
        return [sequence.begin()] + steps.map { $0(&sequence) }
    }

    @Test func goesUpAndDownInTheOrderOfWGQuick() {
        let all = actions(
            { $0.commandsEnded(true) }, { $0.tunnelStarted(true) }, { $0.commandsEnded(true) }, { $0.stopRequested() },
            { $0.commandsEnded(true) }, { $0.tunnelStopped(true) }, { $0.commandsEnded(true) })
        #expect(
            all == [
                [.run(.preUp)], [.startTunnel], [.run(.postUp)], [.announceReady], [.run(.preDown)], [.stopTunnel],
                [.closeInterface, .run(.postDown)], [.end(status: 0)],
            ])
    }

    @Test func aCommandThatFailsOnTheWayUpUndoesTheStart() {
        #expect(
            actions({ $0.commandsEnded(false) }, { $0.commandsEnded(true) })
                == [[.run(.preUp)], [.closeInterface, .run(.postDown)], [.end(status: 1)]])
        #expect(
            actions(
                { $0.commandsEnded(true) }, { $0.tunnelStarted(true) }, { $0.commandsEnded(false) },
                { $0.tunnelStopped(true) }, { $0.commandsEnded(true) }
            ).suffix(3)
                == [[.stopTunnel], [.closeInterface, .run(.postDown)], [.end(status: 1)]])
    }

    @Test func aCommandThatFailsOnTheWayDownHoldsNothingUp() {
        #expect(
            actions(
                { $0.commandsEnded(true) }, { $0.tunnelStarted(true) }, { $0.commandsEnded(true) },
                { $0.stopRequested() }, { $0.commandsEnded(false) }, { $0.tunnelStopped(true) },
                { $0.commandsEnded(false) }
            ).suffix(3)
                == [[.stopTunnel], [.closeInterface, .run(.postDown)], [.end(status: 0)]])
    }

    @Test func aStartThatFailsEndsWithAnError() {
        #expect(
            actions({ $0.commandsEnded(true) }, { $0.tunnelStarted(false) }, { $0.commandsEnded(true) }).suffix(2)
                == [[.closeInterface, .run(.postDown)], [.end(status: 1)]])
    }

    @Test func whatCouldNotBeTakenBackIsAnError() {
        #expect(
            actions(
                { $0.commandsEnded(true) }, { $0.tunnelStarted(true) }, { $0.commandsEnded(true) },
                { $0.stopRequested() }, { $0.commandsEnded(true) }, { $0.tunnelStopped(false) },
                { $0.commandsEnded(true) }
            ).last == [.end(status: 1)])
    }

    @Test func aStopInEachStage() {
        var new = RunSequence()
        #expect(new.stopRequested() == [.end(status: 0)])

        #expect(
            actions(
                { $0.stopRequested() }, { $0.stopRequested() }, { $0.commandsEnded(true) }, { $0.commandsEnded(true) })
                == [
                    [.run(.preUp)], [], [.endCommand], [.closeInterface, .run(.postDown)], [.end(status: 0)],
                ])
        #expect(
            actions(
                { $0.commandsEnded(true) }, { $0.stopRequested() }, { $0.stopRequested() }, { $0.tunnelStarted(false) },
                { $0.stopRequested() }, { $0.tunnelStopped(true) }, { $0.stopRequested() }, { $0.commandsEnded(true) },
                { $0.stopRequested() })
                == [
                    [.run(.preUp)], [.startTunnel], [.stopTunnel], [], [], [], [.closeInterface, .run(.postDown)],
                    [.endCommand], [.end(status: 0)], [],
                ])
        #expect(
            actions(
                { $0.commandsEnded(true) }, { $0.tunnelStarted(true) }, { $0.stopRequested() }, { $0.stopRequested() },
                { $0.commandsEnded(true) }, { $0.stopRequested() }, { $0.commandsEnded(true) }
            ).suffix(5)
                == [[], [.endCommand], [.run(.preDown)], [.endCommand], [.stopTunnel]])
    }

    /// A deleted interface, while a command runs: one command runs at a time.
    @Test func aTunnelThatIsLostDuringACommandIsClosedAfterIt() {
        #expect(
            actions(
                { $0.commandsEnded(true) }, { $0.tunnelStarted(true) }, { $0.tunnelLost() }, { $0.commandsEnded(true) },
                { $0.commandsEnded(true) }
            ).suffix(3)
                == [[], [.closeInterface, .run(.postDown)], [.end(status: 1)]])
        #expect(
            actions(
                { $0.commandsEnded(true) }, { $0.tunnelStarted(true) }, { $0.commandsEnded(true) },
                { $0.stopRequested() }, { $0.tunnelLost() }, { $0.commandsEnded(true) }, { $0.commandsEnded(true) }
            ).suffix(3)
                == [[], [.closeInterface, .run(.postDown)], [.end(status: 0)]])
    }

    @Test func aTunnelThatIsLostWhileItIsUpIsAnError() {
        #expect(
            actions(
                { $0.commandsEnded(true) }, { $0.tunnelStarted(true) }, { $0.commandsEnded(true) }, { $0.tunnelLost() },
                { $0.commandsEnded(true) }
            ).suffix(2)
                == [[.closeInterface, .run(.postDown)], [.end(status: 1)]])
    }

    /// Whatever happens in whatever order, to a daemon that does what it is told.
    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func everyOrderEndsOnceAndWell(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var daemon = ScriptedDaemon()
        daemon.perform { $0.begin() }
        for _ in 0..<200 where daemon.status == nil { daemon.step(&generator) }
        // Everything that runs comes to its end.
        for _ in 0..<20 where daemon.status == nil {
            daemon.perform { $0.stopRequested() }
            daemon.finishWhatRuns(&generator)
        }
        #expect(daemon.faults == [])
        #expect(daemon.status != nil)
        #expect(daemon.isClosed || !daemon.hasBegun)
        let expected: Int32 = daemon.hasFailed ? 1 : 0
        #expect(daemon.status == expected)
        daemon.perform { $0.stopRequested() + $0.tunnelLost() + $0.commandsEnded(true) + $0.tunnelStopped(true) }
        #expect(daemon.faults == [])
    }
}

/// A daemon as far as a sequence knows it, which notes what must not be.
private struct ScriptedDaemon {
    private enum Tunnel {
        case idle
        case starting
        case up
        case stopping(failedStart: Bool)
        case down
    }

    private var sequence = RunSequence()
    private var running: RunSequence.Commands?
    private var ran: [RunSequence.Commands] = []
    private var tunnel = Tunnel.idle
    private(set) var isClosed = false
    private(set) var status: Int32?
    private(set) var faults: [String] = []
    /// True when something failed that a status has to tell.
    private(set) var hasFailed = false
    private var wasStopped = false
    private(set) var hasBegun = false

    mutating func perform(_ input: (inout RunSequence) -> [RunSequence.Action]) {
        for action in input(&sequence) { perform(action) }
    }

    private mutating func perform(_ action: RunSequence.Action) {
        hasBegun = true
        if status != nil { faults.append("\(action) after the end") }
        switch action {
        case .run(let commands):
            if let running { faults.append("\(commands) while \(running) run") }
            if ran.contains(commands) { faults.append("\(commands) twice") }
            if commands == .postDown, !isClosed { faults.append("PostDown before the interface is closed") }
            if commands != .postDown, isClosed { faults.append("\(commands) without an interface") }
            running = commands
            ran.append(commands)
        case .endCommand: if running == nil { faults.append("nothing to end") }
        case .startTunnel:
            guard case .idle = tunnel else { return faults.append("a second start") }
            if wasStopped { faults.append("a start after a stop") }
            tunnel = .starting
        case .announceReady:
            if wasStopped { faults.append("ready after a stop") }
            guard case .up = tunnel else { return faults.append("ready without a tunnel") }
        case .stopTunnel:
            switch tunnel {
            case .starting: tunnel = .stopping(failedStart: true)
            case .up: tunnel = .stopping(failedStart: false)
            case .idle, .stopping, .down: faults.append("a stop without a tunnel")
            }
        case .closeInterface:
            if isClosed { faults.append("closed twice") }
            switch tunnel {
            case .idle, .down: break
            case .starting, .up, .stopping: faults.append("closed under a tunnel")
            }
            isClosed = true
        case .end(let value):
            if running != nil { faults.append("the end while commands run") }
            status = value
        }
    }

    mutating func step(_ generator: inout SeededGenerator) {
        switch generator.next() % 8 {
        case 0:
            wasStopped = true
            perform { $0.stopRequested() }
        case 1: loseTunnel()
        default: finishWhatRuns(&generator)
        }
    }

    mutating func finishWhatRuns(_ generator: inout SeededGenerator) {
        let isGood = generator.next() % 4 != 0
        if let commands = running, generator.next() % 2 == 0 {
            running = nil
            if !isGood, commands == .preUp || commands == .postUp { hasFailed = true }
            return perform { $0.commandsEnded(isGood) }
        }
        switch tunnel {
        case .starting:
            tunnel = isGood ? .up : .down
            if !isGood { hasFailed = true }
            perform { $0.tunnelStarted(isGood) }
        case .stopping(let failedStart):
            tunnel = .down
            if failedStart { perform { $0.tunnelStarted(false) } }
            if !isGood { hasFailed = true }
            perform { $0.tunnelStopped(isGood) }
        case .idle, .up, .down: break
        }
    }

    private mutating func loseTunnel() {
        guard case .up = tunnel else { return }
        tunnel = .down
        if !sequence.isStopping { hasFailed = true }
        perform { $0.tunnelLost() }
    }
}
