internal import ByteAccess

/// The lines of a hosts file. They end in LF, CR or both; a byte order mark in front of the first is no part of it.
struct HostsLines: ~Escapable {
    private let bytes: RawSpan
    private var offset: Int

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, isStart: Bool = true) {
        self.bytes = bytes
        let hasMark =
            isStart && bytes.byteCount >= 3 && bytes.uint8(at: 0) == 0xEF && bytes.uint8(at: 1) == 0xBB
            && bytes.uint8(at: 2) == 0xBF
        offset = hasMark ? 3 : 0
    }

    /// The next line without its end; nil behind the last one.
    @_lifetime(copy self)
    mutating func next() -> RawSpan? {
        guard offset < bytes.byteCount else { return nil }
        let start = offset
        while offset < bytes.byteCount, bytes.uint8(at: offset) != 0x0A, bytes.uint8(at: offset) != 0x0D { offset += 1 }
        let end = offset
        // CR and LF in a row make an empty line between them, which is nothing.
        offset += 1
        return bytes.extracting(start..<end)
    }
}

/// The words of a line of a hosts file: what is between blanks, up to a `#`.
struct HostsWords: ~Escapable {
    private let line: RawSpan
    private var offset = 0

    @_lifetime(copy line)
    init(_ line: RawSpan) {
        self.line = line
    }

    private static func isBlank(_ octet: UInt8) -> Bool { octet == 0x20 || 0x09...0x0D ~= octet }

    /// The next word; nil when there is none.
    @_lifetime(copy self)
    mutating func next() -> RawSpan? {
        while offset < line.byteCount, Self.isBlank(line.uint8(at: offset)) { offset += 1 }
        let start = offset
        while offset < line.byteCount, !Self.isBlank(line.uint8(at: offset)),
            line.uint8(at: offset) != UInt8(ascii: "#")
        {
            offset += 1
        }
        guard offset > start else {
            // A comment goes on to the end.
            offset = line.byteCount
            return nil
        }
        return line.extracting(start..<offset)
    }
}
