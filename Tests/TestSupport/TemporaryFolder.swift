internal import FoundationEssentials

/// Makes a new, empty folder that only its owner may enter. Its path is short enough for sockets in it.
func makeTemporaryFolder() throws -> String {
    let path = "/tmp/sluice-test-\(String(UInt64.random(in: .min ... .max), radix: 36))"
    try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    return path
}

/// Removes a folder with what is in it.
func removeTemporaryFolder(_ path: String) {
    try? FileManager.default.removeItem(atPath: path)
}

/// Runs `body` with the path of a new, empty folder, which is removed afterwards with what is in it.
public func inTemporaryFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
    let path = try makeTemporaryFolder()
    defer { removeTemporaryFolder(path) }
    return try body(path)
}
