public import ByteAccess

/// The query that most clients send, read in one pass: one question and nothing else, but an OPT record without options.
///
/// Of bytes that it can be made of it says what ``QueryView`` says; what it cannot be made of may be a query all the same.
public struct PlainQuery: BitwiseCopyable, Sendable {
    /// What the answer repeats.
    public let id: UInt16
    /// The bits of the header.
    public let flags: DNSFlags
    /// QTYPE.
    public let type: RecordType
    /// QCLASS.
    public let recordClass: RecordClass
    /// Where the question ends, which begins behind the header.
    public let questionEnd: Int
    /// The size in bytes that an answer by UDP may have at the client, as it is on the wire; 0 without EDNS.
    public let udpPayloadSize: UInt16
    /// True when there is an OPT record.
    public let hasEDNS: Bool
    /// True when signatures are wanted (RFC 3225).
    public let dnssecOK: Bool

    /// Reads the query at the start of `bytes`; nil when it is not of this kind, or is not in order.
    @inlinable
    public init?(_ bytes: RawSpan) {
        // A header, the root, a type and a class. More than a message has cannot be a message.
        guard bytes.byteCount >= 17, bytes.byteCount <= 65_535 else { return nil }
        flags = DNSFlags(rawValue: bytes.bigEndianUInt16(at: 2))
        // All counts at once: one question, no answer, no authority, and an additional record or none.
        let counts = bytes.bigEndianUInt64(at: 4)
        guard flags.rawValue & 0xF800 == 0, counts | 1 == 0x0001_0000_0000_0001 else { return nil }

        // The root may be the 255th octet of the name, and four octets follow it.
        let limit = min(DNSHeader.byteCount + NameLayout.maximumLength - 1, bytes.byteCount - 5)
        var position = DNSHeader.byteCount
        while true {
            guard position <= limit else { return nil }
            let length = Int(bytes.uint8(at: position))
            if length == 0 { break }
            guard length < 0x40 else { return nil }
            position += length + 1
        }
        id = bytes.bigEndianUInt16(at: 0)
        type = RecordType(rawValue: bytes.bigEndianUInt16(at: position + 1))
        recordClass = RecordClass(rawValue: bytes.bigEndianUInt16(at: position + 3))
        questionEnd = position + 5
        hasEDNS = counts & 1 == 1
        guard hasEDNS else {
            udpPayloadSize = 0
            dnssecOK = false
            return
        }
        // OPT: the root, the type, the size, the code's upper bits, the version, flags, and no options.
        guard bytes.byteCount - questionEnd >= 11,
            bytes.bigEndianUInt32(at: questionEnd) >> 8 == UInt32(RecordType.opt.rawValue),
            bytes.uint8(at: questionEnd + 6) == 0, bytes.bigEndianUInt16(at: questionEnd + 9) == 0
        else { return nil }
        udpPayloadSize = bytes.bigEndianUInt16(at: questionEnd + 3)
        dnssecOK = bytes.uint8(at: questionEnd + 7) & 0x80 != 0
    }

    /// The size in bytes that an answer by UDP may have, as ``QueryView/answerLimit(cap:)`` has it.
    @inlinable public var answerLimit: Int {
        min(max(512, Int(udpPayloadSize)), Int(EDNSFields.defaultUDPPayloadSize))
    }

    /// True when the client understands AD: it set the bit, or DO (RFC 6840 §5.7 and §5.8).
    @inlinable public var understandsAuthenticData: Bool { flags.contains(.authenticData) || dnssecOK }
}
