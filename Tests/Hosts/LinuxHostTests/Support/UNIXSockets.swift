import CLinux
import Glibc

@testable import LinuxHost

/// The type and permission bits of a file; nil when there is none.
func mode(of path: String) -> mode_t? {
    var status = stat()
    return unsafe lstat(path, &status) == 0 ? status.st_mode : nil
}

/// Connects to a UNIX socket as a client would.
func connectUNIX(_ path: String) throws -> FileDescriptor {
    let descriptor = FileDescriptor(
        adopting: try systemCall("socket") { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0) })
    guard var address = unixAddress(of: path) else { throw SystemCallError("connect", errno: ENAMETOOLONG) }
    let number = descriptor.rawValue
    _ = try systemCall("connect") { unsafe withSocketAddress(&address) { unsafe connect(number, $0, $1) } }
    return descriptor
}

/// Binds and listens on a UNIX socket with nothing of ours.
func listenUNIX(_ path: String) throws -> FileDescriptor {
    let descriptor = FileDescriptor(
        adopting: try systemCall("socket") { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0) })
    guard var address = unixAddress(of: path) else { throw SystemCallError("bind", errno: ENAMETOOLONG) }
    let number = descriptor.rawValue
    _ = try systemCall("bind") { unsafe withSocketAddress(&address) { unsafe bind(number, $0, $1) } }
    _ = try systemCall("listen") { listen(number, 4) }
    return descriptor
}
