internal import CLinux
internal import Glibc

/// Runs a program of the system to its end: for what has no better interface than a program.
enum ProgramRun {
    /// How it ended.
    struct Outcome: Equatable, Sendable {
        /// Its wait status: 0 when all went well.
        var status: Int32
        /// What it said on standard error, up to 1,024 bytes.
        var complaint: String
    }

    /// The first program of this name in these folders; nil when there is none.
    static func find(_ name: String, in folders: [String]) -> String? {
        folders.lazy.map { "\($0)/\(name)" }.first { unsafe access($0, X_OK) == 0 }
    }

    /// Starts a program, gives it `input` on standard input (4,096 bytes at most, what any pipe holds), and waits until it ends,
    /// though not for what it started itself. It gets nothing of this process's environment but a PATH, and none of its
    /// descriptors.
    static func run(_ program: String, _ arguments: [String], input: String = "") throws(SystemCallError) -> Outcome {
        if input.utf8.count > 4_096 { throw SystemCallError("write(pipe)", errno: EFBIG) }
        let inputPipe = try Pipe()
        let complaints = try Pipe()
        try give(input, to: inputPipe.writing)
        // What it says is read when it has ended: whoever it leaves behind may hold its end for ever. More than a pipe holds it
        // cannot say, and is told so.
        try complaints.writing.setNonBlocking()
        try complaints.reading.setNonBlocking()
        let child = try spawn(
            program, arguments, input: inputPipe.reading.rawValue, complaints: complaints.writing.rawValue)
        var status: Int32 = 0
        _ = try systemCall("waitpid") { unsafe waitpid(child, &status, 0) }
        var complaint = [UInt8](repeating: 0, count: 1_024)
        let number = complaints.reading.rawValue
        // The pointer and the length are the array's own.
        let count = unsafe complaint.withUnsafeMutableBytes { unsafe read(number, $0.baseAddress, $0.count) }
        return Outcome(status: status, complaint: String(decoding: complaint.prefix(max(count, 0)), as: UTF8.self))
    }

    /// A pipe, closed on exec.
    private struct Pipe: ~Copyable {
        let reading: FileDescriptor
        let writing: FileDescriptor

        init() throws(SystemCallError) {
            var ends: [Int32] = [0, 0]
            _ = try systemCall("pipe2") { unsafe clinux_pipe2(&ends, O_CLOEXEC) }
            reading = FileDescriptor(adopting: ends[0])
            writing = FileDescriptor(adopting: ends[1])
        }
    }

    /// Writes what a program is to read, and closes: it sees the end of its input.
    private static func give(_ input: String, to end: consuming FileDescriptor) throws(SystemCallError) {
        try WholeFile.write(Array(input.utf8), to: end)
    }

    private static func spawn(
        _ program: String, _ arguments: [String], input: Int32, complaints: Int32
    ) throws(SystemCallError) -> pid_t {
        var child = ChildProcess(program: program, arguments: arguments)
        child.environment = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        child.input = .descriptor(input)
        child.output = .null
        child.error = .descriptor(complaints)
        child.folder = "/"
        return try child.start()
    }
}
