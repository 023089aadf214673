import ByteAccess

extension DomainNameView {
    /// The name as zone files have it (RFC 1035 §5.1), with the dot of the root: `www.example.com.`, or `.` for the root itself.
    ///
    /// Dots and backslashes inside of labels, and what zone files take for something else, get a backslash; octets that are no
    /// printable ASCII become a backslash and three decimal digits. So the text can be read back to the same octets.
    public var presentation: String {
        if isRoot { return "." }
        var text = ""
        text.reserveCapacity(length)
        var walk = LabelWalk(at: layout.offset)
        while let label = walk.next(in: bytes) {
            for index in label { Self.append(bytes.uint8(at: index), to: &text) }
            text.append(".")
        }
        return text
    }

    private static func append(_ octet: UInt8, to text: inout String) {
        switch octet {
        case UInt8(ascii: "."), UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "("), UInt8(ascii: ")"),
            UInt8(ascii: ";"), UInt8(ascii: "@"), UInt8(ascii: "$"):
            text.append("\\")
            text.unicodeScalars.append(Unicode.Scalar(octet))
        case 0x21...0x7E:
            text.unicodeScalars.append(Unicode.Scalar(octet))
        default:
            text.append("\\")
            if octet < 100 { text.append("0") }
            if octet < 10 { text.append("0") }
            text += String(octet)
        }
    }
}
