import ByteAccess
import Glibc
import PacketTunnel
import TestSupport
import Testing
import WireGuard

/// Once nobody holds them any more, secret keys of a file are nowhere in the process's memory, neither as bytes nor as text.
@Suite(
    .serialized, .disabled(if: isAddressSanitized, "the sanitizer moves stack frames to memory that it keeps untouched")
)
struct KeyResidueTests {
    @Test func aReadFileLeavesNoKeyBehind() throws {
        let key = MaskedKey(seed: 1)
        do {
            let file = key.file(before: "[Interface]\nPrivateKey = ", after: "\n")
            let configuration = try file.withBytes { bytes throws(QuickConfigurationErrors) in
                try QuickConfiguration(reading: bytes)
            }
            // What is looked for is found as long as it is there: in two halves.
            #expect(try key.occurrences() == (bytes: 2, text: 2))
            let written = configuration.file()
            #expect(try key.occurrences() == (bytes: 2, text: 4))
            withExtendedLifetime((configuration)) {}
            _ = consume written
            _ = consume file
        }
        scrubStack()
        #expect(try key.occurrences() == (bytes: 0, text: 0))
    }

    @Test(
        "A wrong file leaves no key behind",
        arguments: [
            "MTU = x\nPrivateKey = ", "PrivateKey = x", "PrivateKey ", "PostUp = ", "Adress = ", "Address = ",
            "Table = ", "[", "",
        ])
    func wrongFiles(_ line: String) throws {
        // What is taken for a command is text that the caller asked for.
        let isCommand = line == "PostUp = "
        let key = MaskedKey(seed: UInt64(line.utf8.count) + 100)
        var errors: [QuickConfigurationError] = []
        do {
            let file = key.file(before: "[Interface]\n" + line, after: isCommand ? "\nMTU = x\n" : "\n")
            do throws(QuickConfigurationErrors) {
                _ = try file.withBytes { bytes throws(QuickConfigurationErrors) in
                    try QuickConfiguration(reading: bytes)
                }
            } catch {
                errors = error.errors
            }
        }
        scrubStack()
        #expect(!errors.isEmpty)
        let found = try key.occurrences()
        #expect(found.bytes == 0)
        #expect(found.text == 0 || !line.hasPrefix("PrivateKey"))
    }
}

/// Whether AddressSanitizer is part of the process.
private let isAddressSanitized = unsafe dlsym(nil, "__asan_init") != nil

/// A key that lies in memory only with its bits inverted, as bytes and as text, so that looking for it does not find the looker's
/// copy.
private struct MaskedKey {
    private let bytes: [UInt8]
    private let text: [UInt8]

    init(seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        var secret = SecretMemory(byteCount: 32)
        secret.withMutableBytes { bytes in
            for offset in 0..<32 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                bytes.store(UInt8(truncatingIfNeeded: state >> 56), at: offset)
            }
        }
        var encoded = SecretMemory(byteCount: KeyText.characterCount)
        encoded.withMutableBytes { bytes in secret.withBytes { KeyText.encode($0, into: &bytes, at: 0) } }
        bytes = secret.withBytes { span in span.byteOffsets.map { ~span.uint8(at: $0) } }
        text = encoded.withBytes { span in span.byteOffsets.map { ~span.uint8(at: $0) } }
    }

    /// A file with the text of the key in it.
    func file(before: String, after: String) -> SecretMemory {
        let (start, end) = (Array(before.utf8), Array(after.utf8))
        var file = SecretMemory(byteCount: start.count + text.count + end.count)
        file.withMutableBytes { bytes in
            for (offset, byte) in start.enumerated() { bytes.store(byte, at: offset) }
            for (offset, byte) in text.enumerated() { bytes.store(~byte, at: start.count + offset) }
            for (offset, byte) in end.enumerated() { bytes.store(byte, at: start.count + text.count + offset) }
        }
        return file
    }

    /// How often the halves of the key and of its text are in the process's writable memory.
    func occurrences() throws -> (bytes: Int, text: Int) {
        let patterns = [bytes[..<16], bytes[16...], text[..<20], text[20..<40]].map { Array($0) }
        var counts = [0, 0, 0, 0]
        let memory = unsafe open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(memory >= 0)
        defer { close(memory) }
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer {
            // What was copied here must not be found the next time. In bounds: it is the whole chunk.
            unsafe chunk.withMemoryRebound(to: UInt8.self) { bytes in
                var span = unsafe MutableSpan(_unsafeElements: bytes)
                var octets = span.mutableOctets
                wipe(&octets)
            }
            unsafe chunk.deallocate()
        }
        let own = UInt64(UInt(bitPattern: chunk.baseAddress))
        for region in try writableRegions() {
            for part in [region.clamped(to: 0..<own), region.clamped(to: own + UInt64(chunk.count)..<UInt64.max)] {
                var address = part.lowerBound
                while address < part.upperBound {
                    let wanted = min(chunk.count, Int(part.upperBound - address))
                    // In bounds. What another thread has unmapped meanwhile reads as an error.
                    let length = unsafe pread(memory, chunk.baseAddress, wanted, off_t(truncatingIfNeeded: address))
                    if length <= 0 { break }
                    let bytes = unsafe UnsafeRawBufferPointer(rebasing: chunk[..<length])
                    for (index, pattern) in patterns.enumerated() { unsafe counts[index] += count(pattern, in: bytes) }
                    if length < wanted || address + UInt64(length) == part.upperBound { break }
                    // What lies across two chunks is found in the next.
                    address += UInt64(length - 19)
                }
            }
        }
        return (counts[0] + counts[1], counts[2] + counts[3])
    }

    private func count(_ pattern: [UInt8], in bytes: UnsafeRawBufferPointer) -> Int {
        guard let start = bytes.baseAddress else { return 0 }
        var count = 0
        var offset = 0
        // Offsets stay so far below the length that the pattern fits.
        while offset + pattern.count <= bytes.count,
            let found = unsafe memchr(start + offset, Int32(~pattern[0]), bytes.count - pattern.count + 1 - offset)
        {
            offset = unsafe found - UnsafeMutableRawPointer(mutating: start)
            if pattern.indices.allSatisfy({ unsafe bytes[offset + $0] == ~pattern[$0] }) { count += 1 }
            offset += 1
        }
        return count
    }

    private func writableRegions() throws -> [Range<UInt64>] {
        let file = unsafe open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while case let length = unsafe read(file, &piece, piece.count), length > 0 { text += piece[..<length] }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            let bounds = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard fields[1].hasPrefix("rw"), bounds[1] - bounds[0] < 1 << 30 else { return nil }
            return bounds[0]..<bounds[1]
        }
    }
}
