import CLinux
import Glibc
import Provider
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct ShellCommandsTests {
    /// Runs commands to their end, with `during` called after each turn of the loop while they run.
    private func outcome(of list: [String], during: (borrowing ShellCommands) throws -> Void = { _ in }) throws
        -> Int32?
    {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 4)
        var commands = ShellCommands(token: 9)
        var progress = commands.start(list, loop)
        let deadline = HostClock.now() + patience
        while progress == .running {
            try during(commands)
            try loop.wait(until: deadline, into: &events)
            guard events.count == 1 else { throw Impatience(awaited: "the end of a command") }
            #expect(events[0].token == 9)
            progress = commands.handleEnd(loop)
        }
        guard case .ended(let failure) = progress else { return nil }
        // Nothing is left to be told.
        try loop.wait(until: Instant(nanoseconds: 0), into: &events)
        #expect(events.count == 0)
        return failure
    }

    private func facts(_ path: String) -> [String] { (try? readFile(path)).map(lines) ?? [] }

    @Test func noCommandsEndAtOnce() throws {
        #expect(try outcome(of: []) == nil)
    }

    @Test func oneRunsAfterTheOther() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/facts"
            // Each takes its time, and asks for the work of the one before.
            let failure = try outcome(of: [
                "sleep 0.05; echo one > \(path)", "grep -q one \(path) && sleep 0.05 && echo two >> \(path)",
                "grep -q two \(path) && echo three >> \(path)",
            ])
            #expect(failure == nil)
            #expect(facts(path) == ["one", "two", "three"])
        }
    }

    @Test func oneThatFailsIsTheLast() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/facts"
            // A wait status has the exit status in its second byte.
            let status = try outcome(of: ["echo one >> \(path)", "exit 3", "echo three >> \(path)"])
            #expect(status == 3 << 8)
            #expect(facts(path) == ["one"])
            let missing = try outcome(of: ["/nonexistent/program 2> /dev/null"])
            #expect(missing == 127 << 8)
            let killed = try outcome(of: ["kill -9 $$"])
            #expect(killed == SIGKILL)
        }
    }

    @Test func theShellIsBashWithTheEnvironmentAndNothingToRead() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/facts"
            let failure = try outcome(of: [
                """
                { [[ -n $BASH_VERSION ]] && echo bash; echo "$PATH"; readlink /proc/$$/fd/0; cat | wc -c
                cut -d' ' -f5 /proc/$$/stat; echo $$; grep -E 'SigBlk|SigIgn' /proc/self/status; } > \(path)
                """
            ])
            #expect(failure == nil)
            let facts = facts(path)
            #expect(facts.count == 8)
            #expect(facts[0] == "bash")
            let search = unsafe getenv("PATH").map { unsafe String(cString: $0) }
            #expect(facts[1] == search)
            #expect(facts[2] == "/dev/null")
            #expect(facts[3] == "0")
            // A group of its own, with no signal blocked or ignored.
            #expect(facts[4] == facts[5])
            #expect(facts[6] == "SigBlk:\t0000000000000000")
            // But for the two that the C library keeps to itself, 32 and 33.
            let ignored = try #require(UInt64(facts[7].dropFirst("SigIgn:\t".count), radix: 16))
            #expect(ignored & ~(0b11 << 31) == 0)
        }
    }

    @Test func terminateEndsTheCommandAndWhatItStarted() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/facts"
            var isTold = false
            // The shell stays, and so does the one that it starts.
            let status = try outcome(of: ["sleep 600 & echo $! > \(path); wait; true", "echo never >> \(path)"]) {
                commands in
                guard !isTold else { return }
                isTold = true
                try eventually("the command") { facts(path).isEmpty ? nil : () }
                commands.terminate()
            }
            #expect(status == SIGTERM)
            #expect(facts(path).count == 1)
            let child = try #require(pid_t(facts(path)[0]))
            try eventually("the end of what the command started") {
                // It is a zombie, or gone, when it has ended.
                let state = (try? readFile("/proc/\(child)/stat"))?.split(separator: ")").last?.first { $0 != " " }
                return state == nil || state == "Z" ? () : nil
            }
        }
    }

    @Test func terminateWithoutACommandDoesNothing() {
        let commands = ShellCommands(token: 1)
        commands.terminate()
    }

    @Test func aCommandThatLeavesADaemonEndsWithTheShell() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/facts"
            let status = try outcome(of: ["sleep 600 & echo $! > \(path)"])
            #expect(status == nil)
            let child = try #require(pid_t(facts(path).first ?? ""))
            #expect(kill(child, SIGKILL) == 0)
        }
    }
}
