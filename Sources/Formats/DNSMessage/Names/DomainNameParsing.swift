import ByteAccess

/// Why a text is not a name.
public enum DomainNameTextError: Error, Hashable, Sendable {
    /// No character at all: the root is written as a dot.
    case emptyName
    /// Two dots in a row, or a dot at the beginning.
    case emptyLabel
    /// More than 63 octets between two dots.
    case labelTooLong
    /// More than 255 octets in all.
    case nameTooLong
    /// A backslash at the end, one with fewer than three digits, or a number above 255.
    case invalidEscape
}

extension DomainName {
    /// Reads a name as zone files have it (RFC 1035 §5.1): labels with dots between them, `\X` for the character X, `\DDD` for the
    /// octet with that decimal number. It is always whole: a dot at the end changes nothing. Octets above 0x7F are taken as they are.
    public init(parsing text: String) throws(DomainNameTextError) {
        self.init()
        var characters = text.utf8.makeIterator()
        var label = InlineArray<63, UInt8>(repeating: 0)
        var labelLength = 0
        var isEmpty = true
        var endsInDot = false
        while let character = characters.next() {
            endsInDot = false
            var octet = character
            if character == UInt8(ascii: ".") {
                if labelLength == 0 {
                    // Only the root begins with a dot, and it ends with it.
                    guard isEmpty, characters.next() == nil else { throw .emptyLabel }
                    return
                }
                try append(label: label.span.octets.extracting(..<labelLength))
                labelLength = 0
                endsInDot = true
                continue
            }
            if character == UInt8(ascii: "\\") {
                guard let escaped = characters.next() else { throw .invalidEscape }
                octet = escaped
                if let hundreds = escaped.decimalDigit {
                    guard let tens = characters.next()?.decimalDigit, let ones = characters.next()?.decimalDigit
                    else { throw .invalidEscape }
                    guard let number = UInt8(exactly: hundreds * 100 + tens * 10 + ones) else { throw .invalidEscape }
                    octet = number
                }
            }
            guard labelLength < label.count else { throw .labelTooLong }
            label[labelLength] = octet
            labelLength += 1
            isEmpty = false
        }
        if labelLength > 0 {
            try append(label: label.span.octets.extracting(..<labelLength))
        } else if !endsInDot {
            throw .emptyName
        }
    }
}

extension UInt8 {
    /// The value of an ASCII digit.
    fileprivate var decimalDigit: Int? {
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= self ? Int(self) - Int(UInt8(ascii: "0")) : nil
    }
}
