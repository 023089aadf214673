import Glibc

@testable import LinuxHost

/// A command that did not end with 0.
struct CommandFailure: Error {
    var command: [String]
    var status: Int32
}

/// Runs a command in the calling thread's namespace and waits for it.
func run(_ command: String...) throws {
    let arguments = CStringList(command)
    let variables = CStringList(["PATH=/usr/sbin:/usr/bin:/sbin:/bin"])
    var child: pid_t = 0
    let error = unsafe posix_spawnp(&child, command[0], nil, nil, arguments.pointer, variables.pointer)
    if error != 0 { throw CommandFailure(command: command, status: -error) }
    var status: Int32 = 0
    _ = try systemCall("waitpid") { unsafe waitpid(child, &status, 0) }
    if status != 0 { throw CommandFailure(command: command, status: status) }
}

/// Writes a kernel setting of the calling thread's namespace.
func setKernelSetting(_ path: String, _ value: String) throws {
    let number = try systemCall("open") { unsafe open("/proc/sys/\(path)", O_WRONLY) }
    defer { close(number) }
    var value = value
    _ = try value.withUTF8 { bytes in
        try systemCall("write") { unsafe write(number, bytes.baseAddress, bytes.count) }
    }
}
