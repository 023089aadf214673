import Glibc

@testable import LinuxHost

/// Writes a file with these permission bits.
func writeFile(_ text: String, to path: String, mode: mode_t) throws {
    let number = try systemCall("open") { unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600) }
    defer { close(number) }
    var text = text
    let count = try text.withUTF8 { bytes in
        try systemCall("write") { unsafe write(number, bytes.baseAddress, bytes.count) }
    }
    precondition(count == text.utf8.count, "a short write to a file")
    _ = try systemCall("fchmod") { fchmod(number, mode) }
}

/// The text of a file.
func readFile(_ path: String) throws -> String {
    let number = try systemCall("open") { unsafe open(path, O_RDONLY) }
    defer { close(number) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while case let count = unsafe read(number, &part, part.count), count > 0 { bytes += part[..<count] }
    return String(decoding: bytes, as: UTF8.self)
}
