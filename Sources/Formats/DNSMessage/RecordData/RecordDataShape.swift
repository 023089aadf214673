import ByteAccess

/// The fields that the data of a type has, in this order: bytes of a fixed number, character strings, names, and what is behind.
///
/// That is enough to check the data and to copy it when names have to be written anew.
struct RecordDataShape: BitwiseCopyable {
    /// What is behind the names.
    enum Tail: BitwiseCopyable {
        /// This many bytes.
        case exactly(UInt8)
        /// Whatever there is.
        case opaque
        /// One character string or more.
        case strings
        /// One character string or none.
        case optionalString
        /// A type bitmap (RFC 4034 §4.1.2).
        case typeBitmap
        /// SvcParams (RFC 9460 §2.2).
        case serviceParameters
        /// EDNS options (RFC 6891 §6.1.2).
        case options
        /// The fields of TSIG or TKEY behind the algorithm's name: fixed bytes with a length, fixed bytes with a length.
        case transactionKey(UInt8)
    }

    /// The number of bytes in front.
    let fixed: UInt8
    /// The number of character strings behind them.
    let strings: UInt8
    /// The number of names behind them.
    let names: UInt8
    /// True when the names may be compressed in a message that is written: only those that RFC 1035 defines (RFC 3597 §4).
    let mayCompress: Bool
    let tail: Tail

    private init(
        fixed: UInt8 = 0, strings: UInt8 = 0, names: UInt8 = 0, mayCompress: Bool = false, tail: Tail = .exactly(0)
    ) {
        self.fixed = fixed
        self.strings = strings
        self.names = names
        self.mayCompress = mayCompress
        self.tail = tail
    }

    /// The shape of a type's data; opaque for types that are not known.
    init(of type: RecordType) {
        switch type.rawValue {
        case 1: self.init(fixed: 4)  // A
        case 2...5, 7...9, 12: self.init(names: 1, mayCompress: true)  // NS, MD, MF, CNAME, MB, MG, MR, PTR
        case 6: self.init(names: 2, mayCompress: true, tail: .exactly(20))  // SOA
        case 11: self.init(fixed: 5, tail: .opaque)  // WKS
        case 13: self.init(strings: 2)  // HINFO
        case 14: self.init(names: 2, mayCompress: true)  // MINFO
        case 15: self.init(fixed: 2, names: 1, mayCompress: true)  // MX
        case 16, 56, 99, 258: self.init(tail: .strings)  // TXT, NINFO, SPF, AVC
        case 17, 58: self.init(names: 2)  // RP, TALINK
        case 18, 21, 36, 107: self.init(fixed: 2, names: 1)  // AFSDB, RT, KX, LP
        case 19: self.init(strings: 1)  // X25
        case 20: self.init(strings: 1, tail: .optionalString)  // ISDN
        case 24, 46: self.init(fixed: 18, names: 1, tail: .opaque)  // SIG, RRSIG
        case 25, 48, 60: self.init(fixed: 4, tail: .opaque)  // KEY, DNSKEY, CDNSKEY
        case 43, 59, 32_768, 32_769: self.init(fixed: 4, tail: .opaque)  // DS, CDS, TA, DLV
        case 26: self.init(fixed: 2, names: 2)  // PX
        case 27: self.init(strings: 3)  // GPOS
        case 28: self.init(fixed: 16)  // AAAA
        case 29: self.init(fixed: 16)  // LOC
        case 30: self.init(names: 1, tail: .opaque)  // NXT
        case 33: self.init(fixed: 6, names: 1)  // SRV
        case 35: self.init(fixed: 4, strings: 3, names: 1)  // NAPTR
        case 37: self.init(fixed: 5, tail: .opaque)  // CERT
        case 39: self.init(names: 1)  // DNAME
        case 41: self.init(tail: .options)  // OPT
        case 44: self.init(fixed: 2, tail: .opaque)  // SSHFP
        case 47: self.init(names: 1, tail: .typeBitmap)  // NSEC
        // NSEC3: salt and hashed name have their lengths in front, as strings do.
        case 50: self.init(fixed: 4, strings: 2, tail: .typeBitmap)
        case 51: self.init(fixed: 4, strings: 1)  // NSEC3PARAM
        case 52, 53: self.init(fixed: 3, tail: .opaque)  // TLSA, SMIMEA
        case 62: self.init(fixed: 6, tail: .typeBitmap)  // CSYNC
        case 63: self.init(fixed: 6, tail: .opaque)  // ZONEMD
        case 64, 65: self.init(fixed: 2, names: 1, tail: .serviceParameters)  // SVCB, HTTPS
        case 104, 106: self.init(fixed: 10)  // NID, L64
        case 105: self.init(fixed: 6)  // L32
        case 108: self.init(fixed: 6)  // EUI48
        case 109: self.init(fixed: 8)  // EUI64
        case 249: self.init(names: 1, tail: .transactionKey(12))  // TKEY
        case 250: self.init(names: 1, tail: .transactionKey(8))  // TSIG
        case 256: self.init(fixed: 4, tail: .opaque)  // URI
        case 257: self.init(fixed: 1, strings: 1, tail: .opaque)  // CAA
        default: self.init(tail: .opaque)
        }
    }

    /// Checks the data of a record. Names in it may point back into the message, but must end within the data.
    func check<let wordCount: Int>(
        _ data: Range<Int>, in message: RawSpan, names starts: inout NameStarts<wordCount>
    ) throws(DNSMessageError) {
        var offset = data.lowerBound + Int(fixed)
        guard offset <= data.upperBound else { throw .invalidRecordDataLength }
        for _ in 0..<strings { try Self.passString(in: message, at: &offset, end: data.upperBound) }
        for _ in 0..<names {
            guard offset < data.upperBound else { throw .invalidRecordDataLength }
            // The span ends with the data, so that no label goes beyond it; pointers lead to what is before it.
            let name = try NameLayout(checking: message.extracting(..<data.upperBound), at: offset)
            try starts.add(name, in: message)
            offset = name.endOffset
        }
        try checkTail(offset..<data.upperBound, in: message)
    }

    private func checkTail(_ range: Range<Int>, in message: RawSpan) throws(DNSMessageError) {
        var offset = range.lowerBound
        switch tail {
        case .exactly(let count):
            guard range.count == Int(count) else { throw .invalidRecordDataLength }
        case .opaque: break
        case .strings:
            guard !range.isEmpty else { throw .invalidRecordDataLength }
            while offset < range.upperBound { try Self.passString(in: message, at: &offset, end: range.upperBound) }
        case .optionalString:
            if offset < range.upperBound { try Self.passString(in: message, at: &offset, end: range.upperBound) }
            guard offset == range.upperBound else { throw .invalidRecordDataLength }
        case .typeBitmap: try Self.checkTypeBitmap(message.extracting(range))
        case .serviceParameters: try ServiceParameterCursor.check(message.extracting(range))
        case .options: try EDNSOptionCursor.check(message.extracting(range))
        case .transactionKey(let count):
            // TSIG: time signed, fudge, MAC; original ID, error, other data. TKEY: times, mode, error, key; other data.
            offset += Int(count)
            try Self.passLongString(in: message, at: &offset, end: range.upperBound)
            if count == 8 { offset += 4 }
            try Self.passLongString(in: message, at: &offset, end: range.upperBound)
            guard offset == range.upperBound else { throw .invalidRecordDataLength }
        }
    }

    /// Steps over a character string: one byte with its length, and as many bytes.
    static func passString(in message: RawSpan, at offset: inout Int, end: Int) throws(DNSMessageError) {
        guard offset < end else { throw .invalidRecordDataLength }
        offset += 1 + Int(message.uint8(at: offset))
        guard offset <= end else { throw .stringBeyondRecordData }
    }

    /// Steps over two bytes with a length, and as many bytes.
    private static func passLongString(in message: RawSpan, at offset: inout Int, end: Int) throws(DNSMessageError) {
        guard offset + 2 <= end else { throw .invalidRecordDataLength }
        offset += 2 + Int(message.bigEndianUInt16(at: offset))
        guard offset <= end else { throw .stringBeyondRecordData }
    }

    /// Blocks of a window number, a length of 1 to 32 and as many bytes, in the order of their windows.
    private static func checkTypeBitmap(_ bitmap: RawSpan) throws(DNSMessageError) {
        var offset = 0
        var lowestWindow = 0
        while offset < bitmap.byteCount {
            guard offset + 2 <= bitmap.byteCount else { throw .invalidTypeBitmap }
            let (window, length) = (Int(bitmap.uint8(at: offset)), Int(bitmap.uint8(at: offset + 1)))
            guard window >= lowestWindow, 1...32 ~= length, offset + 2 + length <= bitmap.byteCount else {
                throw .invalidTypeBitmap
            }
            lowestWindow = window + 1
            offset += 2 + length
        }
    }
}
