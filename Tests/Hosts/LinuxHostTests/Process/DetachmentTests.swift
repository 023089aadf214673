import CLinux
import Glibc
import TestSupport
import Testing

@testable import LinuxHost

/// A shell plays the part of the detached program: it has only the environment and its descriptors to go by.
@Suite struct DetachmentTests {
    @Test func returnsOnceTheChildIsReadyAndLeavesItRunning() throws {
        try inTemporaryFolder { folder in
            try run("mkfifo", "\(folder)/fifo")
            // The child says that it is ready, then waits for the fifo. Programs it starts must not hold the pipe.
            let outcome = try start(
                """
                printf R >&"$SLUICE_READINESS_FD"; exec {SLUICE_READINESS_FD}>&-; read line < \(folder)/fifo
                printf '%s' "$line" > \(folder)/written; mv \(folder)/written \(folder)/answer
                """)
            #expect(outcome == .ready)
            #expect(mode(of: "\(folder)/answer") == nil)
            try run("bash", "-c", "echo hello > \(folder)/fifo")
            let answer = try eventually("the child's answer") { contents(of: "\(folder)/answer") }
            #expect(answer == "hello")
        }
    }

    @Test func passesOnWhyTheChildFailed() throws {
        #expect(
            try start(#"printf 'Fno TUN: %s' "$REASON" >&"$SLUICE_READINESS_FD"; exit 1"#, [("REASON", "denied")])
                == .failed("no TUN: denied"))
    }

    @Test func noticesAChildThatDiesWithoutAWord() throws {
        // Wait statuses: an exit code in the second byte, a signal in the first.
        #expect(try start("exit 3") == .died(status: 3 << 8))
        #expect(try start("kill -9 $$") == .died(status: 9))
    }

    @Test func theChildIsOnItsOwn() throws {
        try inTemporaryFolder { folder in
            var before = sigset_t()
            var blocked = sigset_t()
            unsafe sigemptyset(&blocked)
            unsafe sigaddset(&blocked, SIGTERM)
            unsafe pthread_sigmask(SIG_BLOCK, &blocked, &before)
            defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
            let outcome = try start(
                """
                { cut -d' ' -f6 /proc/$$/stat; echo $$; pwd; readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2
                grep SigBlk /proc/self/status; } > \(folder)/facts
                printf R >&"$SLUICE_READINESS_FD"
                """)
            #expect(outcome == .ready)
            let facts = contents(of: "\(folder)/facts")?.split(separator: "\n").map(String.init) ?? []
            #expect(facts.count == 7)
            // Session leader, at the root, with nothing to read from or write to, and with no signal blocked. (The
            // group's own output is redirected, so descriptor 1 of the shell itself is asked for.)
            #expect(facts.first == facts.dropFirst().first)
            #expect(facts.dropFirst(2).first == "/")
            #expect(facts.last == "SigBlk:\t0000000000000000")
            #expect(facts.dropFirst(3).first == "/dev/null")
            #expect(facts.dropFirst(5).first == "/dev/null")
        }
    }

    @Test func aProgramThatCannotBeStartedIsAnError() {
        #expect(throws: SystemCallError("posix_spawn", errno: ENOENT)) {
            try Detachment.start(program: "/nonexistent", arguments: [], environment: [], keepsOutput: false)
        }
    }

    private func start(
        _ script: String, _ environment: [(name: String, value: String)] = []
    ) throws -> Detachment.Outcome {
        try Detachment.start(
            program: "/bin/bash", arguments: ["-c", script], environment: environment, keepsOutput: false)
    }

    private func contents(of path: String) -> String? {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        if number < 0 { return nil }
        defer { close(number) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe read(number, &bytes, bytes.count)
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }
}
