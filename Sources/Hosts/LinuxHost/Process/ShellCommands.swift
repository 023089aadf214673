internal import CLinux
internal import Glibc

/// Commands for the shell that run one after another while the event loop goes on: a command may want to use the tunnel.
struct ShellCommands: ~Copyable {
    /// What became of the commands.
    enum Progress: Equatable {
        /// One of them runs.
        case running
        /// They ended; with the wait status of the one that failed, which is the last that ran.
        case ended(failure: Int32?)
    }

    private static let shells = ["/bin/bash", "/usr/bin/bash", "/bin/sh"]

    private let token: UInt64
    private var waiting: ArraySlice<String> = []
    private var child: pid_t = 0
    /// Readable when the command ended.
    private var end: FileDescriptor?

    /// No commands; the events of the loop that are about some carry `token`.
    init(token: UInt64) {
        self.token = token
    }

    /// Runs commands, each after the one before succeeded. None may be running.
    mutating func start(_ commands: [String], _ loop: borrowing EventLoop) -> Progress {
        precondition(child == 0, "commands while others run")
        waiting = commands[...]
        return next(loop)
    }

    /// Takes notice of an event of the loop.
    mutating func handleEnd(_ loop: borrowing EventLoop) -> Progress {
        guard child != 0 else { return .ended(failure: nil) }
        var status: Int32 = 0
        // The pointer lives for the call.
        let reaped = unsafe waitpid(child, &status, WNOHANG)
        if reaped == 0 || (reaped < 0 && errno == EINTR) { return .running }
        forget(loop)
        if status != 0 {
            waiting = []
            return .ended(failure: status)
        }
        return next(loop)
    }

    /// Asks the command that runs, and what it started, to end.
    func terminate() {
        // The group was made with the command, and lives as long as one of its processes.
        if child != 0 { _ = kill(-child, SIGTERM) }
    }

    private mutating func next(_ loop: borrowing EventLoop) -> Progress {
        guard let command = waiting.popFirst() else { return .ended(failure: nil) }
        do throws(SystemCallError) {
            let child = try Self.spawn(command)
            self.child = child
            try watch(child, loop)
            return .running
        } catch {
            // A command that runs and cannot be watched is waited for here and now.
            guard child != 0 else { return .ended(failure: 127 << 8) }
            var status: Int32 = 0
            while unsafe waitpid(child, &status, 0) < 0 && errno == EINTR {}
            child = 0
            return status == 0 ? next(loop) : .ended(failure: status)
        }
    }

    private mutating func watch(_ child: pid_t, _ loop: borrowing EventLoop) throws(SystemCallError) {
        let end = FileDescriptor(adopting: try systemCall("pidfd_open") { clinux_pidfd_open(child) })
        try loop.register(end, token: token, interest: .readable)
        self.end = consume end
    }

    private mutating func forget(_ loop: borrowing EventLoop) {
        child = 0
        guard let end = end.take() else { return }
        try? loop.unregister(end)
    }

    private static func spawn(_ command: String) throws(SystemCallError) -> pid_t {
        let shell = shells.first { unsafe access($0, X_OK) == 0 } ?? "/bin/sh"
        var child = ChildProcess(program: shell, arguments: ["-c", command])
        child.relation = .ownGroup
        return try child.start()
    }
}
