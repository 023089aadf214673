import ByteAccess
import DNSMessage

/// The bytes that hexadecimal digits spell; white space separates nothing.
func hex(_ digits: String) -> [UInt8] {
    let digits = digits.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// What `body` writes into a buffer; it returns how many bytes.
func written(_ body: (inout MutableRawSpan) throws -> Int) rethrows -> [UInt8] {
    var buffer = [UInt8](repeating: 0xEE, count: 65_535)
    var span = buffer.mutableSpan
    var octets = span.mutableOctets
    let count = try body(&octets)
    return Array(buffer[..<count])
}

/// The error that reading bytes as a message throws; nil when they are one.
func messageError(_ bytes: [UInt8]) -> DNSMessageError? {
    do {
        _ = try DNSMessageView(checking: bytes.span.octets)
        return nil
    } catch {
        return error
    }
}

extension [UInt8] {
    /// The bytes of a span.
    init(_ span: RawSpan) {
        // In one copy: what tests do at random does this millions of times, and is built without optimization.
        self = unsafe span.withUnsafeBytes { unsafe Array($0) }
    }
}
