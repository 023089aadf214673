internal import ByteAccess

/// Reads the head of one request by HTTP/1.0 or 1.1 (RFC 9112), however it is cut into pieces. What follows the head, a body for
/// one, is not looked at: a server that uses this answers one request and ends the connection.
///
/// It is strict where requests could be taken for something else than their sender meant: lines that are folded, blanks in front
/// of a colon, control characters, and no or several Host fields are errors.
public struct HTTPRequestReader: Sendable {
    /// What the bytes so far amount to.
    public enum Progress: Hashable, Sendable {
        /// The head is not whole.
        case incomplete
        /// A whole head that is in order.
        case request(HTTPRequest)
        /// A head that is not: the status to answer with.
        case refused(HTTPStatus)
    }

    /// The most bytes of a head.
    public static let headLimit = 8_192
    /// The most bytes of a request line.
    public static let lineLimit = 2_048

    /// The line that is not whole.
    private var line: [UInt8] = []
    private var byteCount = 0
    private var request: HTTPRequest?
    /// What is wrong with a line so far.
    private var problem: HTTPStatus?
    private var mayLackHost = false
    private var hostCount = 0
    private var end: Progress?

    /// Nothing read yet.
    public init() {}

    /// Takes the next bytes of the connection. Once the head is whole, or too long, nothing changes any more.
    public mutating func take(_ bytes: RawSpan) -> Progress {
        for offset in bytes.byteOffsets {
            if let end { return end }
            take(bytes.uint8(at: offset))
        }
        return end ?? .incomplete
    }

    private mutating func take(_ byte: UInt8) {
        byteCount += 1
        if byte == UInt8(ascii: "\n") {
            // A line may end without the carriage return (RFC 9112 §2.2).
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            finishLine()
            line.removeAll(keepingCapacity: true)
        } else {
            line.append(byte)
            if !hasRequestLine, line.count > Self.lineLimit { end = .refused(.targetTooLong) }
        }
        if end == nil, byteCount >= Self.headLimit { end = .refused(.headerTooLarge) }
    }

    private var hasRequestLine: Bool { request != nil || problem != nil }

    private mutating func finishLine() {
        if !hasRequestLine {
            // Empty lines in front of a request are passed over (RFC 9112 §2.2).
            if !line.isEmpty { readRequestLine() }
        } else if line.isEmpty {
            finish()
        } else if let name = Self.fieldName(line[...]) {
            if Self.lowercased(name) == "host" { hostCount += 1 }
        } else {
            problem = problem ?? .badRequest
        }
    }

    private mutating func readRequestLine() {
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3, Self.isToken(words[0]), !words[1].isEmpty, words[1].allSatisfy({ 0x21...0x7E ~= $0 }),
            let version = Self.version(words[2])
        else {
            problem = .badRequest
            return
        }
        if version.major != 1 { problem = .versionNotSupported }
        mayLackHost = version.minor == 0
        request = HTTPRequest(method: Self.text(words[0]), path: Self.path(words[1]))
    }

    private mutating func finish() {
        // RFC 9112 §3.2.
        if problem == nil, hostCount > 1 || hostCount == 0 && !mayLackHost { problem = .badRequest }
        if let problem {
            end = .refused(problem)
        } else if let request {
            end = .request(request)
        }
    }

    /// The numbers of `HTTP/1.1` (RFC 9112 §2.3).
    private static func version(_ word: ArraySlice<UInt8>) -> (major: UInt8, minor: UInt8)? {
        let bytes = Array(word)
        guard bytes.count == 8, text(bytes[..<5]) == "HTTP/", bytes[6] == UInt8(ascii: "."), isDigit(bytes[5]),
            isDigit(bytes[7])
        else { return nil }
        return (bytes[5] - UInt8(ascii: "0"), bytes[7] - UInt8(ascii: "0"))
    }

    /// The name of a header field whose line is in order (RFC 9112 §5).
    private static func fieldName(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), isToken(line[..<colon]) else { return nil }
        // RFC 9110 §5.5: visible characters, blanks, and what is not ASCII.
        guard line[(colon + 1)...].allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == UInt8(ascii: "\t") }) else {
            return nil
        }
        return line[..<colon]
    }

    /// The path of a target: of `/path?query`, or of a whole URI, which a server has to understand too (RFC 9112 §3.2.2). `*` and an
    /// authority are of use with methods only that nobody answers; they are paths that lead nowhere.
    private static func path(_ target: ArraySlice<UInt8>) -> String {
        var rest = target
        if rest.first != UInt8(ascii: "/") {
            let scheme = Array("http://".utf8)
            guard lowercased(rest.prefix(scheme.count)) == "http://" else { return text(rest) }
            rest = rest.dropFirst(scheme.count).drop { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        }
        let path = rest.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        return path.isEmpty ? "/" : text(path)
    }

    /// True for a token (RFC 9110 §5.6.2).
    private static func isToken(_ word: ArraySlice<UInt8>) -> Bool {
        !word.isEmpty
            && word.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
                    UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
                    true
                default: isDigit(byte)
                }
            }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

    /// A text of ASCII.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

    private static func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
        text(bytes.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | 0x20 : $0 }[...])
    }
}
