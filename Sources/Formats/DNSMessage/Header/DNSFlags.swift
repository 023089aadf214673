/// The second pair of bytes of a header: single bits, the opcode and the low bits of the response code (RFC 1035 §4.1.1).
public struct DNSFlags: OptionSet, Hashable, Sendable, BitwiseCopyable {
    /// The sixteen bits, in host order.
    public var rawValue: UInt16

    /// The flags with these bits.
    @inlinable
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// QR: this is an answer.
    @inlinable public static var response: Self { Self(rawValue: 0x8000) }
    /// AA: the server has authority for the name.
    @inlinable public static var authoritativeAnswer: Self { Self(rawValue: 0x0400) }
    /// TC: something had to be left out.
    @inlinable public static var truncated: Self { Self(rawValue: 0x0200) }
    /// RD: the server is asked to ask others.
    @inlinable public static var recursionDesired: Self { Self(rawValue: 0x0100) }
    /// RA: the server asks others for its clients.
    @inlinable public static var recursionAvailable: Self { Self(rawValue: 0x0080) }
    /// Z: reserved, zero.
    @inlinable public static var reserved: Self { Self(rawValue: 0x0040) }
    /// AD: the answer was found authentic; in a query, that the client understands the bit (RFC 6840 §5.7).
    @inlinable public static var authenticData: Self { Self(rawValue: 0x0020) }
    /// CD: the client checks signatures itself (RFC 4035 §3.2.2).
    @inlinable public static var checkingDisabled: Self { Self(rawValue: 0x0010) }

    /// The four bits of the opcode.
    @inlinable public var opcode: Opcode {
        get { Opcode(rawValue: UInt8(truncatingIfNeeded: rawValue >> 11)) }
        set { rawValue = rawValue & ~0x7800 | UInt16(newValue.rawValue & 0xF) << 11 }
    }

    /// The low four bits of the response code; the others are in the OPT record.
    @inlinable public var responseCode: ResponseCode {
        get { ResponseCode(rawValue: rawValue & 0xF) }
        set { rawValue = rawValue & ~0xF | newValue.headerBits }
    }
}
