extension JSON5Value {
    /// How deep arrays and objects may be nested.
    public static let maximumDepth = 32
    /// The longest text in bytes.
    public static let maximumByteCount = 1 << 20

    /// Reads a text: UTF-8, with or without a byte order mark.
    ///
    /// Foundation reads JSON5 too, but it tells no places, passes over names that come twice, traps on some malformed numbers, and
    /// costs a program that needs nothing else of it 1.5 MiB of memory.
    ///
    /// - Throws: The first thing that is not JSON5, or that is beyond ``maximumDepth`` and ``maximumByteCount``.
    public init(reading bytes: RawSpan) throws(JSON5Error) {
        guard bytes.byteCount <= Self.maximumByteCount else {
            throw JSON5Error(position: JSON5Position(line: 1, column: 1), problem: .tooLong)
        }
        var reader = JSON5Reader(text: try JSON5Text(bytes))
        self = try reader.readText()
    }
}

/// Reads values by recursive descent, as deep as ``JSON5Value/maximumDepth``.
struct JSON5Reader: ~Escapable {
    var text: JSON5Text

    @_lifetime(copy text)
    init(text: consuming JSON5Text) {
        self.text = text
    }

    /// The value that the whole text is.
    mutating func readText() throws(JSON5Error) -> JSON5Value {
        try skipWhiteSpace()
        let value = try readValue(depth: 0)
        try skipWhiteSpace()
        if text.next != nil { throw text.failure(.expectedEndOfText) }
        return value
    }

    private mutating func readValue(depth: Int) throws(JSON5Error) -> JSON5Value {
        let position = text.position
        return JSON5Value(position: position, content: try readContent(depth: depth))
    }

    private mutating func readContent(depth: Int) throws(JSON5Error) -> JSON5Value.Content {
        switch text.next {
        case "{":
            if depth == JSON5Value.maximumDepth { throw text.failure(.tooDeep) }
            return .object(try readMembers(depth: depth + 1))
        case "[":
            if depth == JSON5Value.maximumDepth { throw text.failure(.tooDeep) }
            return .array(try readElements(depth: depth + 1))
        case "\"", "'": return .string(try readString())
        case "+", "-", ".": return try readNumber()
        case let digit? where digit.isDecimalDigit: return try readNumber()
        case let letter? where letter.beginsJSON5Name || letter == "\\":
            let start = text.failure(.unknownWord)
            switch try readName() {
            case "null": return .null
            case "true": return .boolean(true)
            case "false": return .boolean(false)
            case "Infinity": return .real(.infinity)
            case "NaN": return .real(.nan)
            default: throw start
            }
        default: throw text.failure(.expectedValue)
        }
    }

    private mutating func readElements(depth: Int) throws(JSON5Error) -> [JSON5Value] {
        try text.advance()
        var elements: [JSON5Value] = []
        while true {
            try skipWhiteSpace()
            if try text.skip("]") { return elements }
            elements.append(try readValue(depth: depth))
            try skipWhiteSpace()
            if try text.skip(",") { continue }
            guard try text.skip("]") else { throw text.failure(.expectedArrayEnd) }
            return elements
        }
    }

    private mutating func readMembers(depth: Int) throws(JSON5Error) -> [JSON5Member] {
        try text.advance()
        var members: [JSON5Member] = []
        while true {
            try skipWhiteSpace()
            if try text.skip("}") { return members }
            let position = text.position
            let name: String
            switch text.next {
            case "\"", "'": name = try readString()
            case let letter? where letter.beginsJSON5Name || letter == "\\": name = try readName()
            default: throw text.failure(.expectedName)
            }
            try skipWhiteSpace()
            guard try text.skip(":") else { throw text.failure(.expectedColon) }
            try skipWhiteSpace()
            members.append(JSON5Member(name: name, position: position, value: try readValue(depth: depth)))
            try skipWhiteSpace()
            if try text.skip(",") { continue }
            guard try text.skip("}") else { throw text.failure(.expectedObjectEnd) }
            return members
        }
    }

    /// Goes over white space and comments.
    private mutating func skipWhiteSpace() throws(JSON5Error) {
        while let scalar = text.next {
            if scalar.isJSON5WhiteSpace {
                try text.advance()
            } else if scalar == "/" {
                try skipComment()
            } else {
                return
            }
        }
    }

    private mutating func skipComment() throws(JSON5Error) {
        let start = text.failure(.endlessComment)
        let noComment = text.failure(.expectedValue)
        try text.advance()
        if try text.skip("*") {
            while text.next != nil {
                // Of two stars in a row the second may be the one before the slash.
                if try text.skip("*") {
                    if try text.skip("/") { return }
                } else {
                    try text.advance()
                }
            }
            throw start
        }
        guard try text.skip("/") else { throw noComment }
        while let scalar = text.next, !scalar.isJSON5LineTerminator { try text.advance() }
    }

    /// Reads a name without quotes.
    mutating func readName() throws(JSON5Error) -> String {
        var name = String.UnicodeScalarView()
        while let scalar = text.next {
            if scalar == "\\" {
                let failure = text.failure(.invalidEscape)
                try text.advance()
                guard try text.skip("u"), let escaped = Unicode.Scalar(try readHexadecimal(count: 4)),
                    name.isEmpty ? escaped.beginsJSON5Name : escaped.continuesJSON5Name
                else { throw failure }
                name.append(escaped)
            } else if name.isEmpty ? scalar.beginsJSON5Name : scalar.continuesJSON5Name {
                name.append(scalar)
                try text.advance()
            } else {
                break
            }
        }
        return String(name)
    }

    /// Reads as many hexadecimal digits.
    mutating func readHexadecimal(count: Int) throws(JSON5Error) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let digit = text.next?.hexadecimalDigit else { throw text.failure(.invalidEscape) }
            value = value << 4 | digit
            try text.advance()
        }
        return value
    }
}
