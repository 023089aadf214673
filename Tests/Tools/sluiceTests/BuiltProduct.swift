import Glibc

@testable import LinuxHost

/// What a program wrote, and how it ended.
struct ProgramOutcome: Equatable {
    var status: Int32
    var output: String
    var errors: String
}

/// Runs the `sluice` that was built together with these tests, which is in the same folder, and waits for its end.
///
/// - Parameter folder: An empty folder for its output.
func runSluice(_ arguments: [String], in folder: String, environment: [String] = []) throws -> ProgramOutcome {
    var path = [CChar](repeating: 0, count: 4096)
    let length = unsafe readlink("/proc/self/exe", &path, path.count - 1)
    let tests = String(decoding: path.prefix(max(length, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let program = tests[..<(tests.lastIndex(of: "/") ?? tests.startIndex)] + "/sluice"

    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    for (number, name) in [(STDOUT_FILENO, "output"), (STDERR_FILENO, "errors")] {
        unsafe posix_spawn_file_actions_addopen(
            &actions, number, "\(folder)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    }
    let argumentList = CStringList([String(program)] + arguments)
    let variables = CStringList(["PATH=/usr/sbin:/usr/bin:/sbin:/bin"] + environment)
    var child: pid_t = 0
    let error = unsafe posix_spawn(&child, String(program), &actions, nil, argumentList.pointer, variables.pointer)
    if error != 0 { throw SystemCallError("posix_spawn", errno: error) }
    var status: Int32 = 0
    _ = try systemCall("waitpid") { unsafe waitpid(child, &status, 0) }
    return ProgramOutcome(
        status: status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F), output: try readText("\(folder)/output"),
        errors: try readText("\(folder)/errors"))
}

/// The text of a file.
func readText(_ path: String) throws -> String {
    let number = try systemCall("open") { unsafe open(path, O_RDONLY) }
    defer { close(number) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while case let count = unsafe read(number, &part, part.count), count > 0 { bytes += part[..<count] }
    return String(decoding: bytes, as: UTF8.self)
}

/// Writes a file with these permission bits.
func writeText(_ text: String, to path: String, mode: mode_t = 0o600) throws {
    let number = try systemCall("open") { unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600) }
    defer { close(number) }
    var text = text
    let count = try text.withUTF8 { bytes in
        try systemCall("write") { unsafe write(number, bytes.baseAddress, bytes.count) }
    }
    precondition(count == text.utf8.count, "a short write to a file")
    _ = try systemCall("fchmod") { fchmod(number, mode) }
}
