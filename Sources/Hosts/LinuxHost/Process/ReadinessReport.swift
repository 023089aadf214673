internal import CLinux
internal import Glibc

/// The detached child's end of the pipe on which its parent waits to hear that it is ready: one byte says what follows
/// it.
///
///     ┌─ waiting ─┐── 'R' ──▶ ready: the parent exits with 0
///     │           │── 'F' and a message ──▶ failed: the parent prints it and exits with 1
///     └───────────┘── end of file ──▶ the child died: the parent says so and exits with 1
public struct ReadinessReport: ~Copyable {
    /// The environment variable that holds the descriptor's number.
    static let environmentVariable = "SLUICE_READINESS_FD"
    static let readyMark = UInt8(ascii: "R")
    static let failureMark = UInt8(ascii: "F")

    private let pipe: FileDescriptor

    /// The report that this process owes its parent; nil when it was not started by `Detachment`. It can be taken once.
    public static func fromEnvironment() -> ReadinessReport? {
        // Called while there is one thread: nobody else changes the environment.
        guard let value = unsafe getenv(environmentVariable), let number = unsafe Int32(String(cString: value)),
            number > STDERR_FILENO, fcntl(number, F_GETFD) >= 0
        else { return nil }
        unsafe unsetenv(environmentVariable)
        let pipe = FileDescriptor(adopting: number)
        // Programs that the daemon starts must not keep the parent waiting.
        guard (try? pipe.setCloseOnExec()) != nil else { return nil }
        return ReadinessReport(pipe: pipe)
    }

    private init(pipe: consuming FileDescriptor) {
        self.pipe = pipe
    }

    /// Says that everything a user counts on is there.
    public consuming func ready() {
        send([Self.readyMark])
    }

    /// Says why it will never be.
    public consuming func failed(_ message: String) {
        // Below PIPE_BUF, so that it is written at once.
        send([Self.failureMark] + message.utf8.prefix(1_024))
    }

    private func send(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { bytes in
            // The pointer and the length are the array's own. A parent that is gone waits for nothing.
            _ = unsafe write(pipe.rawValue, bytes.baseAddress, bytes.count)
        }
    }
}
