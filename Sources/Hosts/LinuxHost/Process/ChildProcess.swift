internal import CLinux
internal import Glibc

/// Starts a program as a child. Here and nowhere else: what a child must not inherit is the same for all. It gets no signals that this
/// process blocks or ignores, and no more descriptors than this process was allowed before it allowed itself more.
struct ChildProcess {
    /// What one of the standard streams is.
    enum Stream {
        /// What it is here.
        case inherited
        /// /dev/null.
        case null
        /// A descriptor of this process.
        case descriptor(Int32)
    }

    /// Whom it is together with.
    enum Relation {
        /// This process.
        case sameGroup
        /// What it starts itself: signals can be sent to all of them.
        case ownGroup
        /// Nobody, and no terminal.
        case ownSession
    }

    /// The path of the program.
    var program: String
    /// Its arguments, behind its own name.
    var arguments: [String]
    /// What the program is told that it is called; nil for its path.
    var name: String?
    /// Its environment; nil for this process's own, which nobody changes.
    var environment: [String]?
    /// Standard input.
    var input = Stream.null
    /// Standard output.
    var output = Stream.inherited
    /// Standard error.
    var error = Stream.inherited
    /// A descriptor that it gets besides, under the same number.
    var passed: Int32?
    /// The folder that it starts in; nil for this process's.
    var folder: String?
    /// Whom it is together with.
    var relation = Relation.sameGroup

    /// Starts it; returns the number of the process.
    func start() throws(SystemCallError) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        // Both are initialized here and destroyed at the end; the pointers live for each call. The calls fail only without memory.
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        for (stream, number) in [(input, STDIN_FILENO), (output, STDOUT_FILENO), (error, STDERR_FILENO)] {
            switch stream {
            case .inherited: break
            case .null: unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
            case .descriptor(let own): unsafe posix_spawn_file_actions_adddup2(&actions, own, number)
            }
        }
        // A duplicate onto itself only clears close-on-exec.
        if let passed { unsafe posix_spawn_file_actions_adddup2(&actions, passed, passed) }
        if let folder { unsafe clinux_spawn_set_working_directory(&actions, folder) }
        var none = sigset_t()
        var all = sigset_t()
        unsafe sigemptyset(&none)
        unsafe sigfillset(&all)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &all)
        var flags = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
        switch relation {
        case .sameGroup: break
        case .ownGroup:
            unsafe posix_spawnattr_setpgroup(&attributes, 0)
            flags |= Int32(POSIX_SPAWN_SETPGROUP)
        case .ownSession: flags |= clinux_spawn_flag_new_session()
        }
        unsafe posix_spawnattr_setflags(&attributes, Int16(truncatingIfNeeded: flags))
        let argumentList = CStringList([name ?? program] + arguments)
        let environmentList = CStringList(environment ?? [])
        let hasEnvironment = environment != nil
        var child: pid_t = 0
        // Unlike other calls this one returns its error number.
        let error = DescriptorLimit.whileUsual {
            unsafe posix_spawn(
                &child, program, &actions, &attributes, argumentList.pointer,
                hasEnvironment ? environmentList.pointer : environ)
        }
        if error != 0 { throw SystemCallError("posix_spawn", errno: error) }
        return child
    }
}
