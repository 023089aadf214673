import CLinux
import Glibc
import Testing

@testable import LinuxHost

/// Runs `body` in a network namespace of its own, with the loopback up, on the calling thread. The namespace vanishes
/// afterwards.
func inNewNetworkNamespace<Result>(_ body: () throws -> Result) throws -> Result {
    let home = try openOwnNamespace()
    guard clinux_unshare_net() == 0 else { throw SystemCallError("unshare", errno: errno) }
    defer { enter(home) }
    try run("ip", "link", "set", "lo", "up")
    return try body()
}

/// Runs `body` in the network namespace that a descriptor stands for, on the calling thread.
func inNetworkNamespace<Result: ~Copyable>(
    _ namespace: borrowing FileDescriptor, _ body: () throws -> Result
) throws -> Result {
    let home = try openOwnNamespace()
    enter(namespace)
    defer { enter(home) }
    return try body()
}

/// A new network namespace, with the loopback up; it vanishes with its descriptor.
func makeNetworkNamespace() throws -> FileDescriptor {
    let home = try openOwnNamespace()
    guard clinux_unshare_net() == 0 else { throw SystemCallError("unshare", errno: errno) }
    defer { enter(home) }
    try run("ip", "link", "set", "lo", "up")
    return try openOwnNamespace()
}

/// The network namespace of the calling thread.
func openOwnNamespace() throws -> FileDescriptor {
    FileDescriptor(
        adopting: try systemCall("open") { unsafe open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC) })
}

/// The number that tells network namespaces apart.
func namespaceIdentity(_ namespace: borrowing FileDescriptor) -> UInt64 {
    var status = stat()
    precondition(unsafe fstat(namespace.rawValue, &status) == 0)
    return UInt64(status.st_ino)
}

/// How `ip` is told a namespace without a name: by a path to this process's descriptor.
func path(of namespace: borrowing FileDescriptor) -> String { "/proc/\(getpid())/fd/\(namespace.rawValue)" }

private func enter(_ namespace: borrowing FileDescriptor) {
    precondition(clinux_setns_net(namespace.rawValue) == 0, "a test cannot leave its namespace")
}
