internal import CLinux
internal import Glibc

/// Small files, read and written as a whole.
enum WholeFile {
    /// The bytes of a file.
    static func read(_ path: String) throws(SystemCallError) -> [UInt8] {
        let descriptor = FileDescriptor(
            adopting: try systemCall("open") { unsafe open(path, O_RDONLY | O_CLOEXEC) })
        return try read(descriptor)
    }

    /// The bytes of an open file from where it is at.
    static func read(_ descriptor: borrowing FileDescriptor) throws(SystemCallError) -> [UInt8] {
        let number = descriptor.rawValue
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = try systemCall("read") {
                // The pointer and the length are the array's own.
                unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(number, $0.baseAddress, $0.count) }
            }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
        }
    }

    /// Writes all of `bytes` to an open file, from where it is at.
    static func write(_ bytes: [UInt8], to descriptor: borrowing FileDescriptor) throws(SystemCallError) {
        let number = descriptor.rawValue
        var written = 0
        while written < bytes.count {
            written += try systemCall("write") {
                // The pointer and the length are what is left of the array.
                unsafe bytes[written...].withUnsafeBytes { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
            }
        }
    }

    /// Makes a folder for root alone to write in; one that exists keeps its permissions.
    static func makeFolder(_ path: String) throws(SystemCallError) {
        if unsafe mkdir(path, 0o755) != 0 && errno != EEXIST { throw SystemCallError("mkdir", errno: errno) }
    }
}
