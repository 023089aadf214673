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
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        // Both are initialized here and destroyed at the end; the pointers live for each call. The calls fail only without
        // memory.
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        // The child must not inherit the signals that this process blocked or ignored, and gets a group of its own.
        var none = sigset_t()
        var all = sigset_t()
        unsafe sigemptyset(&none)
        unsafe sigfillset(&all)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &all)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        let flags = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF) | Int32(POSIX_SPAWN_SETPGROUP)
        unsafe posix_spawnattr_setflags(&attributes, Int16(truncatingIfNeeded: flags))
        let shell = shells.first { unsafe access($0, X_OK) == 0 } ?? "/bin/sh"
        let arguments = CStringList([shell, "-c", command])
        var child: pid_t = 0
        // Unlike other calls this one returns its error number. The environment is the process's own, which nobody changes.
        let error = unsafe posix_spawn(&child, shell, &actions, &attributes, arguments.pointer, environ)
        if error != 0 { throw SystemCallError("posix_spawn", errno: error) }
        return child
    }
}
