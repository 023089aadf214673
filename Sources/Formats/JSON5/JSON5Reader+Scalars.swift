extension JSON5Reader {
    /// Reads a string in quotes of either kind.
    mutating func readString() throws(JSON5Error) -> String {
        let start = text.failure(.endlessString)
        guard let quote = text.next else { throw start }
        try text.advance()
        var string = String.UnicodeScalarView()
        while let scalar = text.next {
            if try text.skip(quote) { return String(string) }
            // The two separators of Unicode may stand in a string (§5.2 of the specification).
            if scalar == "\n" || scalar == "\r" { throw start }
            if scalar == "\\" {
                if let escaped = try readEscape() { string.append(escaped) }
            } else {
                string.append(scalar)
                try text.advance()
            }
        }
        throw start
    }

    /// Reads an escape; nil for the end of a line, which the string goes on behind.
    private mutating func readEscape() throws(JSON5Error) -> Unicode.Scalar? {
        let failure = text.failure(.invalidEscape)
        try text.advance()
        guard let scalar = text.next else { throw failure }
        if scalar != "u" && scalar != "x" { try text.advance() }
        switch scalar {
        case "b": return "\u{08}"
        case "f": return "\u{0C}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "v": return "\u{0B}"
        case "0":
            if let next = text.next, next.isDecimalDigit { throw failure }
            return "\0"
        case "1"..."9": throw failure
        case "x":
            try text.advance()
            return Unicode.Scalar(try readHexadecimal(count: 2))
        case "u": return try readUnicodeEscape(failure)
        case "\r":
            _ = try text.skip("\n")
            return nil
        case _ where scalar.isJSON5LineTerminator: return nil
        default: return scalar
        }
    }

    /// Reads `uXXXX`, and the second one of a surrogate pair.
    private mutating func readUnicodeEscape(_ failure: JSON5Error) throws(JSON5Error) -> Unicode.Scalar {
        try text.advance()
        let first = try readHexadecimal(count: 4)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, try text.skip("\\"), try text.skip("u") else { throw failure }
        let second = try readHexadecimal(count: 4)
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw failure }
        return scalar
    }

    /// Reads a number, with its sign.
    mutating func readNumber() throws(JSON5Error) -> JSON5Value.Content {
        let failure = text.failure(.invalidNumber)
        let isNegative = text.next == "-"
        if isNegative || text.next == "+" { try text.advance() }
        if text.next == "I" || text.next == "N" {
            switch try readName() {
            case "Infinity": return .real(isNegative ? -.infinity : .infinity)
            case "NaN": return .real(.nan)
            default: throw failure
            }
        }
        let content = try readDigits(isNegative: isNegative, failure)
        if let follower = text.next, follower.continuesJSON5Name || follower == "\\" { throw failure }
        return content
    }

    private mutating func readDigits(
        isNegative: Bool, _ failure: JSON5Error
    ) throws(JSON5Error) -> JSON5Value.Content {
        var whole = ""
        if try text.skip("0") {
            if text.next == "x" || text.next == "X" {
                return try readHexadecimalNumber(isNegative: isNegative, failure)
            }
            if text.next?.isDecimalDigit == true { throw failure }
            whole = "0"
        } else {
            whole = try readDecimalDigits()
        }
        let hasPoint = try text.skip(".")
        let fraction = hasPoint ? try readDecimalDigits() : ""
        if whole.isEmpty && fraction.isEmpty { throw failure }
        var exponent = ""
        if text.next == "e" || text.next == "E" {
            try text.advance()
            let sign = text.next == "-" ? "-" : ""
            if text.next == "-" || text.next == "+" { try text.advance() }
            exponent = try readDecimalDigits()
            if exponent.isEmpty { throw failure }
            exponent = sign + exponent
        } else if !hasPoint, let number = Int((isNegative ? "-" : "") + whole) {
            return .integer(number)
        }
        guard let number = Double("0\(whole).\(fraction)0e\(exponent.isEmpty ? "0" : exponent)"), number.isFinite else {
            throw JSON5Error(position: failure.position, problem: .numberTooLarge)
        }
        return .real(isNegative ? -number : number)
    }

    private mutating func readDecimalDigits() throws(JSON5Error) -> String {
        var digits = ""
        while let digit = text.next, digit.isDecimalDigit {
            digits.unicodeScalars.append(digit)
            try text.advance()
        }
        return digits
    }

    private mutating func readHexadecimalNumber(
        isNegative: Bool, _ failure: JSON5Error
    ) throws(JSON5Error) -> JSON5Value.Content {
        try text.advance()
        guard text.next?.hexadecimalDigit != nil else { throw failure }
        var number: UInt64 = 0
        while let digit = text.next?.hexadecimalDigit {
            guard number >> 60 == 0 else { throw JSON5Error(position: failure.position, problem: .numberTooLarge) }
            number = number << 4 | UInt64(digit)
            try text.advance()
        }
        if let whole = Int(exactly: number) { return .integer(isNegative ? -whole : whole) }
        return .real(isNegative ? -Double(number) : Double(number))
    }
}
