import ByteAccess
import Glibc
import TestSupport
import Testing

@testable import LinuxHost

struct ConfigurationFileTests {
    private func read(_ path: String, _ rule: ConfigurationFile.Rule, limit: Int = 1000) throws(ConfigurationFileError)
        -> [UInt8]
    {
        try ConfigurationFile.read(path, rule: rule, limit: limit).withBytes { bytes in
            bytes.byteOffsets.map { bytes.uint8(at: $0) }
        }
    }

    @Test(
        "Lines come whole, however long they are, and the last one as it is",
        arguments: ["", "\n", "a", "a\r\nb\n\rc", "long"])
    func lines(_ text: String) throws {
        // Lines about as long as what is read at once, and much longer.
        let lengths = [0, 1, 65_534, 65_535, 65_536, 3, 131_072, 200_000, 7]
        let text = text == "long" ? lengths.map { String(repeating: "x", count: $0) }.joined(separator: "\n") : text
        try inTemporaryFolder { folder in
            let path = "\(folder)/file"
            try writeFile(text, to: path, mode: 0o644)
            var pieces: [[UInt8]] = []
            try ConfigurationFile.readLines(path, limit: text.utf8.count) { lines, fileLength in
                #expect(fileLength == text.utf8.count)
                pieces.append(lines.byteOffsets.map { lines.uint8(at: $0) })
            }
            #expect(pieces.flatMap { $0 } == Array(text.utf8))
            for piece in pieces.dropLast() { #expect(piece.last == 0x0A || piece.last == 0x0D) }
            if text.isEmpty { return }
            #expect(throws: ConfigurationFileError.tooLong(limit: text.utf8.count - 1)) {
                try ConfigurationFile.readLines(path, limit: text.utf8.count - 1) { _, _ in }
            }
        }
    }

    @Test(
        "Secrets are read only when nobody else can do anything with them",
        arguments: [
            (0o600, true, true), (0o400, true, true), (0o700, true, true), (0o640, false, true), (0o440, false, true),
            (0o660, false, false), (0o604, false, false), (0o602, false, false), (0o601, false, false),
            (0o610, false, false),
            (0o644, false, false),
        ] as [(mode_t, Bool, Bool)])
    func permissions(_ mode: mode_t, _ isSecret: Bool, _ isCredential: Bool) throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/file"
            try writeFile("text", to: path, mode: mode)
            #expect(try read(path, .any) == Array("text".utf8))
            for (rule, isTaken) in [(ConfigurationFile.Rule.secret, isSecret), (.credential, isCredential)] {
                if isTaken {
                    #expect(try read(path, rule) == Array("text".utf8))
                } else {
                    #expect(throws: ConfigurationFileError.openToOthers(mode: UInt32(mode))) { try read(path, rule) }
                    #expect(throws: ConfigurationFileError.openToOthers(mode: UInt32(mode))) {
                        try ConfigurationFile.check(path, rule: rule)
                    }
                }
            }
        }
    }

    @Test func aSecretOfSomebodyElseIsRefused() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/file"
            try writeFile("text", to: path, mode: 0o600)
            _ = try systemCall("chown") { unsafe chown(path, 12345, 0) }
            #expect(throws: ConfigurationFileError.foreignOwner(userID: 12345)) { try read(path, .secret) }
            #expect(throws: ConfigurationFileError.foreignOwner(userID: 12345)) { try read(path, .credential) }
            #expect(try read(path, .any) == Array("text".utf8))
        }
    }

    @Test func filesOfEveryLengthAreReadWhole() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/file"
            for count in [0, 1, 4095, 4096, 4097, 8192, 100_000] {
                let text = String(repeating: "0123456789", count: count / 10 + 1).prefix(count)
                try writeFile(String(text), to: path, mode: 0o600)
                #expect(try read(path, .secret, limit: count) == Array(text.utf8))
                if count > 0 {
                    #expect(throws: ConfigurationFileError.tooLong(limit: count - 1)) {
                        try read(path, .any, limit: count - 1)
                    }
                }
            }
        }
    }

    @Test func aPipeIsReadToItsEnd() throws {
        var ends: [Int32] = [0, 0]
        _ = try systemCall("pipe") { unsafe pipe(&ends) }
        let reading = FileDescriptor(adopting: ends[0])
        let writing = FileDescriptor(adopting: ends[1])
        let number = writing.rawValue
        _ = try systemCall("write") { unsafe write(number, "hello", 5) }
        _ = consume writing
        #expect(try read("/proc/self/fd/\(reading.rawValue)", .any) == Array("hello".utf8))
    }

    @Test func whatIsNotThereIsSaid() throws {
        #expect(throws: ConfigurationFileError.unreadable(errno: ENOENT)) { try read("/nonexistent", .any) }
        #expect(throws: ConfigurationFileError.unreadable(errno: EISDIR)) { try read("/", .secret) }
    }
}
