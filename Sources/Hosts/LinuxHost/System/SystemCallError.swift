internal import CLinux
internal import Glibc

/// A system call that failed: which one, and with what error number.
public struct SystemCallError: Error, Hashable, Codable, Sendable {
    /// The error number, `EPERM` for one.
    public var errno: Int32
    /// The name of the call or request, as Linux spells it. Never a value that somebody passed in.
    public var operation: String

    /// A failure of `operation`, which is a literal so that no secret can slip into a log.
    public init(_ operation: StaticString, errno: Int32) {
        self.errno = errno
        self.operation = operation.description
    }
}

extension SystemCallError: CustomStringConvertible {
    /// The operation, the system's message and the name of the error number.
    public var description: String {
        // Both functions return a static string or null.
        guard let message = unsafe clinux_error_description(errno), let name = unsafe clinux_error_name(errno) else {
            return "\(operation): error \(errno)"
        }
        return unsafe "\(operation): \(String(cString: message)) (\(String(cString: name)))"
    }
}

/// Runs a system call that returns a negative number and sets `errno` when it fails; again when a signal interrupted
/// it.
@inline(__always)
func systemCall<Result: SignedInteger>(
    _ operation: StaticString, _ call: () -> Result
) throws(SystemCallError) -> Result {
    while true {
        let result = call()
        if result >= 0 { return result }
        let error = errno
        if error != EINTR { throw SystemCallError(operation, errno: error) }
    }
}
