/// A value of a JSON5 text (https://spec.json5.org), with the place where it begins.
public struct JSON5Value: Hashable, Sendable {
    /// Where the value begins.
    public var position: JSON5Position
    /// What it is.
    public var content: Content

    /// The kinds of values.
    public indirect enum Content: Hashable, Sendable {
        case null
        case boolean(Bool)
        /// A number that is written without a point and an exponent, and that fits.
        case integer(Int)
        /// Any other number, infinities and NaN among them.
        case real(Double)
        case string(String)
        case array([JSON5Value])
        /// The members in the order of the text. The same name may come twice.
        case object([JSON5Member])
    }

    /// A value at a place.
    public init(position: JSON5Position, content: Content) {
        self.position = position
        self.content = content
    }
}

/// A member of an object.
public struct JSON5Member: Hashable, Sendable {
    /// The name, without quotes and escapes.
    public var name: String
    /// Where the name begins.
    public var position: JSON5Position
    /// The value.
    public var value: JSON5Value

    /// A member at a place.
    public init(name: String, position: JSON5Position, value: JSON5Value) {
        self.name = name
        self.position = position
        self.value = value
    }
}

/// A place in a text, as editors count: from 1, in lines that end with a line feed, a carriage return or both, and in Unicode
/// scalars from the beginning of the line.
public struct JSON5Position: Hashable, Sendable {
    /// The number of the line.
    public var line: Int
    /// The number of the scalar in it.
    public var column: Int

    /// A place.
    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

/// Why a text is not JSON5, or not one that is read here.
public struct JSON5Error: Error, Hashable, Sendable {
    /// Where it went wrong.
    public var position: JSON5Position
    /// What went wrong.
    public var problem: Problem

    /// What can go wrong.
    public enum Problem: Error, Hashable, Sendable {
        /// Something else stands where a value must.
        case expectedValue
        /// A word that is no value stands where a value must.
        case unknownWord
        /// Something else stands where the name of a member or the end of the object must.
        case expectedName
        /// Something else stands where the colon behind a name must.
        case expectedColon
        /// Something else stands behind an element of an array.
        case expectedArrayEnd
        /// Something else stands behind a member of an object.
        case expectedObjectEnd
        /// Something follows the value.
        case expectedEndOfText
        /// A string has no end on its line.
        case endlessString
        /// A comment has no end.
        case endlessComment
        /// A backslash is followed by what it cannot be.
        case invalidEscape
        /// A number has no digits where it must, or too many zeros before them.
        case invalidNumber
        /// A number is beyond what a `Double` can hold.
        case numberTooLarge
        /// The bytes are not UTF-8.
        case invalidUTF8
        /// Arrays and objects are nested deeper than ``JSON5Value/maximumDepth``.
        case tooDeep
        /// The text is longer than ``JSON5Value/maximumByteCount``.
        case tooLong
    }
}

extension JSON5Error.Problem: CustomStringConvertible {
    /// What went wrong, in words.
    public var description: String {
        switch self {
        case .expectedValue: "expected a value"
        case .unknownWord: "expected a value; strings need quotes"
        case .expectedName: "expected a key or \"}\""
        case .expectedColon: "expected \":\" behind the key"
        case .expectedArrayEnd: "expected \",\" or \"]\""
        case .expectedObjectEnd: "expected \",\" or \"}\""
        case .expectedEndOfText: "expected nothing more behind the value"
        case .endlessString: "expected the end of the string on the same line"
        case .endlessComment: "expected \"*/\" at the end of the comment"
        case .invalidEscape: "expected an escape such as \\n, \\x41 or \\u0041 behind the backslash"
        case .invalidNumber: "expected a number such as 25, -1.5, 2e3 or 0xff"
        case .numberTooLarge: "expected a smaller number"
        case .invalidUTF8: "expected text in UTF-8"
        case .tooDeep: "expected at most \(JSON5Value.maximumDepth) levels of brackets"
        case .tooLong: "expected at most \(JSON5Value.maximumByteCount) bytes"
        }
    }
}
