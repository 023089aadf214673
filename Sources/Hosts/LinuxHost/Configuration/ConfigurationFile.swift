internal import ByteAccess
internal import CLinux
internal import Glibc
internal import WireGuard

/// Why a file that a configuration consists of cannot be used.
public enum ConfigurationFileError: Error, Hashable, Sendable {
    /// The system does not let it be read, with this error number.
    case unreadable(errno: Int32)
    /// Others than its owner can do something with it; these are its permission bits.
    case openToOthers(mode: UInt32)
    /// It belongs to this user, who is neither root nor who runs the program.
    case foreignOwner(userID: UInt32)
    /// It is longer than this many bytes.
    case tooLong(limit: Int)
    /// A credential is named, but systemd handed over none.
    case noCredentials
}

extension ConfigurationFileError: CustomStringConvertible {
    /// What is wrong with the file, in words.
    public var description: String {
        switch self {
        case .unreadable(let error):
            // The function returns a static string or null.
            if let text = unsafe clinux_error_description(error) {
                "cannot be read: \(unsafe String(cString: text))"
            } else {
                "cannot be read: error \(error)"
            }
        case .openToOthers(let mode):
            "holds secrets and is open to others (mode 0\(String(mode, radix: 8))); chmod 600 closes it"
        case .foreignOwner(let userID):
            "holds secrets and belongs to user \(userID); expected root or the user who reads it"
        case .tooLong(let limit): "expected at most \(limit) bytes"
        case .noCredentials: "expected $CREDENTIALS_DIRECTORY, which systemd sets where a unit has LoadCredential="
        }
    }
}

/// The bytes of a file, in memory that is wiped when its owner lets go of it.
struct ConfigurationFile: ~Copyable {
    /// What is asked of a file before it is read.
    enum Rule {
        /// Nothing.
        case any
        /// Nobody but root and who reads it may own it, and nobody else may do anything with it.
        case secret
        /// As for a secret, but its group may read it: systemd protects the folder of credentials, and lets a service's user
        /// in by an access list that shows as the group's permissions.
        case credential
    }

    private let memory: SecretMemory
    private let count: Int

    private init(memory: consuming SecretMemory, count: Int) {
        self.memory = memory
        self.count = count
    }

    /// Reads a file of at most `limit` bytes.
    static func read(_ path: String, rule: Rule, limit: Int) throws(ConfigurationFileError) -> ConfigurationFile {
        let descriptor = try open(path, rule)
        // One byte more than there are tells the end, or that there are too many.
        var memory = SecretMemory(byteCount: 4096)
        var count = 0
        while true {
            let more = try fill(&memory, from: count, descriptor.rawValue)
            if more == 0 { return ConfigurationFile(memory: memory, count: count) }
            count += more
            if count > limit { throw .tooLong(limit: limit) }
            if count == memory.byteCount {
                var larger = SecretMemory(byteCount: 2 * count)
                var bytes = larger.mutableBytes
                bytes.copy(memory.bytes, to: 0)
                memory = larger
            }
        }
    }

    /// Calls `body` with the lines of a file of at most `limit` bytes, many at a time, and with the length that the file says to have.
    /// Each ends in LF or CR, but for the last.
    static func readLines(
        _ path: String, limit: Int, _ body: (RawSpan, Int) -> Void
    ) throws(ConfigurationFileError) {
        let descriptor = try open(path, .any)
        let number = descriptor.rawValue
        var status = stat()
        _ = try systemCallOnFile("fstat") { unsafe fstat(number, &status) }
        var buffer = ZeroedBuffer(byteCount: 65_536)
        var (count, total) = (0, 0)
        while true {
            let more = try systemCallOnFile("read") {
                var rest = buffer.mutableBytes(from: count)
                // The pointer and the length are the buffer's own.
                return unsafe rest.withUnsafeMutableBytes { unsafe Glibc.read(number, $0.baseAddress, $0.count) }
            }
            count += more
            total += more
            if total > limit { throw .tooLong(limit: limit) }
            var end = count
            while more > 0, end > 0, ![0x0A, 0x0D].contains(buffer.bytes.uint8(at: end - 1)) { end -= 1 }
            if end > 0 { body(buffer.bytes.extracting(..<end), Int(status.st_size)) }
            if more == 0 { return }
            // The begin of the next line, in as much room again behind it when that is long.
            var next = ZeroedBuffer(byteCount: count - end < buffer.byteCount ? buffer.byteCount : 2 * count)
            var start = next.mutableBytes()
            start.copy(buffer.bytes.extracting(end..<count), to: 0)
            buffer = next
            count -= end
        }
    }

    /// Calls `body` with the bytes of the file.
    func withBytes<Result, Failure: Error>(_ body: (RawSpan) throws(Failure) -> Result) throws(Failure) -> Result {
        try body(memory.bytes.extracting(0..<count))
    }

    /// Makes sure that a file can be read and that `rule` holds for it.
    static func check(_ path: String, rule: Rule) throws(ConfigurationFileError) {
        _ = try open(path, rule)
    }

    private static func open(_ path: String, _ rule: Rule) throws(ConfigurationFileError) -> FileDescriptor {
        // Opening a pipe without a writer would wait, and opening a terminal could make it the process's own.
        let descriptor = FileDescriptor(
            adopting: try systemCallOnFile("open") {
                unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
            })
        let number = descriptor.rawValue
        // Once it is open, a pipe is waited for like any other file.
        _ = try systemCallOnFile("fcntl(F_SETFL)") { fcntl(number, F_SETFL, 0) }
        var status = stat()
        _ = try systemCallOnFile("fstat") { unsafe fstat(number, &status) }
        if status.st_mode & S_IFMT == S_IFDIR { throw .unreadable(errno: EISDIR) }
        if rule == .any { return descriptor }
        guard status.st_uid == 0 || status.st_uid == geteuid() else { throw .foreignOwner(userID: status.st_uid) }
        let forbidden: mode_t = rule == .secret ? 0o077 : 0o037
        guard status.st_mode & forbidden == 0 else { throw .openToOthers(mode: status.st_mode & 0o7777) }
        return descriptor
    }

    /// Reads once to `offset`; 0 at the end.
    private static func fill(
        _ memory: inout SecretMemory, from offset: Int, _ number: Int32
    ) throws(ConfigurationFileError) -> Int {
        try memory.withMutableBytes { bytes throws(ConfigurationFileError) in
            var rest = bytes.slice(offset..<bytes.byteCount)
            return try unsafe rest.withUnsafeMutableBytes { rest throws(ConfigurationFileError) in
                // The pointer and the length are the buffer's own.
                try systemCallOnFile("read") { unsafe Glibc.read(number, rest.baseAddress, rest.count) }
            }
        }
    }
}

/// Runs a system call on a file of a configuration.
private func systemCallOnFile<Result: SignedInteger>(
    _ operation: StaticString, _ call: () -> Result
) throws(ConfigurationFileError) -> Result {
    do throws(SystemCallError) {
        return try systemCall(operation, call)
    } catch {
        throw .unreadable(errno: error.errno)
    }
}
