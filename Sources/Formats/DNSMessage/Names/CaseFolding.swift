extension UInt8 {
    /// The octet with the ASCII letters A to Z made a to z and all others as they are (RFC 4343 §3).
    var lowercasedASCII: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    /// True for an ASCII letter of either case.
    var isASCIILetter: Bool { (self | 0x20) &- 0x61 < 26 }
}
