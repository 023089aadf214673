/// The input read as a program: numbers of operations and their operands. Behind its end everything is zero.
struct Program {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { position >= bytes.count }

    mutating func byte() -> Int {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return Int(bytes[position])
    }

    /// As many of the next bytes as there are, up to `count`.
    mutating func bytes(_ count: Int) -> [UInt8] {
        let end = min(position + count, bytes.count)
        defer { position = end }
        return Array(bytes[position..<end])
    }
}
