internal import ByteAccess

/// A text that is read scalar by scalar, with the place in it.
struct JSON5Text: ~Escapable {
    private let bytes: RawSpan
    private var offset = 0
    private var line = 1
    private var column = 1
    /// The scalar at the place, and how many bytes it has; nil at the end.
    private(set) var next: Unicode.Scalar?
    private var nextLength = 0

    /// Begins before the first scalar that is no byte order mark.
    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) throws(JSON5Error) {
        self.bytes = bytes
        try decode()
    }

    /// Where the next scalar is.
    var position: JSON5Position { JSON5Position(line: line, column: column) }

    /// Goes behind the next scalar. Nothing happens at the end.
    mutating func advance() throws(JSON5Error) {
        guard let passed = next else { return }
        offset += nextLength
        try decodeNext()
        if passed == "\n" || passed == "\r" && next != "\n" {
            line += 1
            column = 1
        } else {
            column += 1
        }
    }

    /// Goes behind the next scalar when it is `scalar`.
    mutating func skip(_ scalar: Unicode.Scalar) throws(JSON5Error) -> Bool {
        guard next == scalar else { return false }
        try advance()
        return true
    }

    /// An error at the next scalar.
    func failure(_ problem: JSON5Error.Problem) -> JSON5Error {
        JSON5Error(position: position, problem: problem)
    }

    private mutating func decode() throws(JSON5Error) {
        try decodeNext()
        if next == "\u{FEFF}" {
            offset += nextLength
            try decodeNext()
        }
    }

    /// Decodes the scalar at `offset` (RFC 3629 §4).
    private mutating func decodeNext() throws(JSON5Error) {
        guard offset < bytes.byteCount else {
            (next, nextLength) = (nil, 0)
            return
        }
        let first = bytes.uint8(at: offset)
        if first < 0x80 {
            (next, nextLength) = (Unicode.Scalar(first), 1)
            return
        }
        let (length, bits): (Int, UInt32) =
            switch first {
            case 0xC2...0xDF: (2, UInt32(first & 0x1F))
            case 0xE0...0xEF: (3, UInt32(first & 0x0F))
            case 0xF0...0xF4: (4, UInt32(first & 0x07))
            default: (1, 0)
            }
        guard length > 1, bytes.byteCount - offset >= length else { throw failure(.invalidUTF8) }
        var value = bits
        for index in 1..<length {
            let byte = bytes.uint8(at: offset + index)
            guard byte & 0xC0 == 0x80 else { throw failure(.invalidUTF8) }
            value = value << 6 | UInt32(byte & 0x3F)
        }
        // Shorter forms of the same scalar and surrogates are no UTF-8.
        let least: UInt32 = [0, 0, 0x80, 0x800, 0x10000][length]
        guard value >= least, let scalar = Unicode.Scalar(value) else { throw failure(.invalidUTF8) }
        (next, nextLength) = (scalar, length)
    }
}

extension Unicode.Scalar {
    /// True for the ends of lines of the specification.
    var isJSON5LineTerminator: Bool { self == "\n" || self == "\r" || self == "\u{2028}" || self == "\u{2029}" }

    /// True for the white space of the specification, ends of lines included.
    var isJSON5WhiteSpace: Bool {
        switch self {
        case "\t", "\u{0B}", "\u{0C}", " ", "\u{A0}", "\u{FEFF}": true
        case _ where isJSON5LineTerminator: true
        default: value > 0x7F && properties.generalCategory == .spaceSeparator
        }
    }

    /// True for what a name without quotes may begin with (ECMAScript 5.1 §7.6).
    var beginsJSON5Name: Bool {
        switch self {
        case "a"..."z", "A"..."Z", "$", "_": return true
        case _ where value < 0x80: return false
        default:
            switch properties.generalCategory {
            case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .letterNumber:
                return true
            default: return false
            }
        }
    }

    /// True for what a name without quotes may go on with (ECMAScript 5.1 §7.6).
    var continuesJSON5Name: Bool {
        if beginsJSON5Name { return true }
        switch self {
        case "0"..."9", "\u{200C}", "\u{200D}": return true
        case _ where value < 0x80: return false
        default:
            switch properties.generalCategory {
            case .nonspacingMark, .spacingMark, .decimalNumber, .connectorPunctuation: return true
            default: return false
            }
        }
    }

    /// The value of a hexadecimal digit; nil for anything else.
    var hexadecimalDigit: UInt32? {
        switch self {
        case "0"..."9": value - 0x30
        case "a"..."f": value - 0x61 + 10
        case "A"..."F": value - 0x41 + 10
        default: nil
        }
    }

    /// True for the digits 0 to 9.
    var isDecimalDigit: Bool { ("0"..."9").contains(self) }
}
