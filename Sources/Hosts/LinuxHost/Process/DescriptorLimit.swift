internal import Glibc
internal import Synchronization

/// How many descriptors the process may have.
enum DescriptorLimit {
    /// What was allowed before; nil as long as that holds.
    private static let usual = Mutex<rlim_t?>(nil)
    /// How many numbers of descriptors must be left below the usual limit for that to be set for a moment, while other threads go on.
    private static let margin: rlim_t = 256

    /// Allows as many as the system lets the process have: each query by UDP has a socket of its own, and so has each client. What is
    /// usually allowed, 1,024, is for programs that still use `select`: children are such, and get that.
    static func raise() {
        usual.withLock { usual in
            guard usual == nil, let limit = current() else { return }
            var higher = limit
            higher.rlim_cur = min(limit.rlim_max, 65_536)
            // A limit that cannot be raised is lived with.
            if higher.rlim_cur > limit.rlim_cur, set(higher) { usual = limit.rlim_cur }
        }
    }

    /// Does something, to start a child, with what was allowed before: a child begins with what its parent has at that moment.
    ///
    /// No thread may run out of descriptors meanwhile. Where so many are open that one could, the child begins with the higher limit.
    static func whileUsual<Result>(_ body: () -> Result) -> Result {
        usual.withLock { usual in
            guard let usual, var limit = current(), hasMargin(below: usual) else { return body() }
            let raised = limit
            limit.rlim_cur = usual
            guard set(limit) else { return body() }
            defer { _ = set(raised) }
            return body()
        }
    }

    /// True when the next descriptor has a number that is well below a limit: the kernel gives out the lowest that is free.
    private static func hasMargin(below limit: rlim_t) -> Bool {
        let number = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return false }
        close(number)
        return rlim_t(number) + margin < limit
    }

    private static func current() -> rlimit? {
        var limit = rlimit()
        // The call writes the value alone.
        return unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
    }

    private static func set(_ limit: rlimit) -> Bool {
        var limit = limit
        // The call reads the value alone.
        return unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    }
}
