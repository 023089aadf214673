internal import Glibc

/// How many descriptors the process may have.
enum DescriptorLimit {
    /// Allows as many as the system lets the process have: each query by UDP has a socket of its own, and so has each client. What is
    /// usually allowed, 1,024, is for programs that still use `select`.
    static func raise() {
        var limit = rlimit()
        // Both calls read or write the value alone. A limit that cannot be raised is lived with.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = min(limit.rlim_max, 65_536)
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
