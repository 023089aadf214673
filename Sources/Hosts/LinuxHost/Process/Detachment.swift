internal import CLinux
internal import Glibc

/// Starts this program again in a session of its own and waits until it says that it is ready. There is never a fork
/// with threads: the child begins from the start of the program.
public enum Detachment {
    /// How the child's start went.
    public enum Outcome: Equatable, Sendable {
        /// It is ready and goes on by itself.
        case ready
        /// It cannot do what it was asked to, for this reason.
        case failed(String)
        /// It ended without a word, with this wait status.
        case died(status: Int32)
    }

    /// The program that this process runs.
    static let thisProgram = "/proc/self/exe"

    /// Starts the program with `arguments` (without its own name), and with `environment` added to this process's. The
    /// child finds its `ReadinessReport`; standard input is /dev/null, and so are output and error unless
    /// `keepsOutput`. Its folder is the root, so that it keeps no file system busy. Inherited descriptors that are not
    /// closed on exec stay open in it.
    public static func start(
        arguments: [String], environment: [(name: String, value: String)] = [], keepsOutput: Bool
    ) throws(SystemCallError) -> Outcome {
        try start(
            program: thisProgram, arguments: arguments, environment: environment, keepsOutput: keepsOutput)
    }

    /// As above, with another program.
    static func start(
        program: String, arguments: [String], environment: [(name: String, value: String)], keepsOutput: Bool
    ) throws(SystemCallError) -> Outcome {
        var ends: [Int32] = [0, 0]
        _ = try systemCall("pipe2") { unsafe clinux_pipe2(&ends, O_CLOEXEC) }
        let readEnd = FileDescriptor(adopting: ends[0])
        let child: pid_t
        do {
            let writeEnd = FileDescriptor(adopting: ends[1])
            child = try spawn(
                program, arguments: arguments, environment: environment, keepsOutput: keepsOutput,
                pipe: writeEnd.rawValue)
            // Here the parent's copy closes: the end of file comes when the child's does.
        }
        let report = try readAll(from: readEnd)
        switch report.first {
        case ReadinessReport.readyMark: return .ready
        case ReadinessReport.failureMark:
            _ = try wait(for: child)
            return .failed(String(decoding: report.dropFirst(), as: UTF8.self))
        default: return .died(status: try wait(for: child))
        }
    }

    private static func spawn(
        _ program: String, arguments: [String], environment: [(name: String, value: String)], keepsOutput: Bool,
        pipe: Int32
    ) throws(SystemCallError) -> pid_t {
        var variables = environment
        variables.append((ReadinessReport.environmentVariable, String(pipe)))
        var child = ChildProcess(program: program, arguments: arguments)
        child.name = CommandLine.arguments.first ?? "sluice"
        child.environment =
            variables.map { "\($0.name)=\($0.value)" } + inheritedEnvironment(without: variables.map(\.name))
        if !keepsOutput { (child.output, child.error) = (.null, .null) }
        child.passed = pipe
        child.folder = "/"
        child.relation = .ownSession
        return try child.start()
    }

    private static func inheritedEnvironment(without names: [String]) -> [String] {
        var strings: [String] = []
        var entry = unsafe environ
        // The list ends with a null pointer; each entry is a terminated string.
        while let string = unsafe entry.pointee {
            let text = unsafe String(cString: string)
            if !names.contains(where: { text.hasPrefix("\($0)=") }) { strings.append(text) }
            unsafe entry += 1
        }
        return strings
    }

    private static func readAll(from descriptor: borrowing FileDescriptor) throws(SystemCallError) -> [UInt8] {
        var collected: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1_025)
        let number = descriptor.rawValue
        while true {
            let count = try systemCall("read(pipe)") {
                // The pointer and the length are the array's own.
                unsafe chunk.withUnsafeMutableBytes { unsafe read(number, $0.baseAddress, $0.count) }
            }
            if count == 0 { return collected }
            collected += chunk[..<count]
        }
    }

    private static func wait(for child: pid_t) throws(SystemCallError) -> Int32 {
        var status: Int32 = 0
        _ = try systemCall("waitpid") { unsafe waitpid(child, &status, 0) }
        return status
    }
}
