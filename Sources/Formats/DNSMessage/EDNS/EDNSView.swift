import ByteAccess

/// The OPT record of a checked message (RFC 6891 §6.1).
public struct EDNSView: ~Escapable {
    private let bytes: RawSpan
    /// Where it is.
    public let layout: RecordLayout

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ layout: RecordLayout) {
        self.bytes = bytes
        self.layout = layout
    }

    /// The size in bytes that the sender can take by UDP, as it is on the wire: see ``effectiveUDPPayloadSize``.
    public var udpPayloadSize: UInt16 { layout.recordClass.rawValue }

    /// The size in bytes that the sender can take by UDP: less than 512 counts as 512 (RFC 6891 §6.2.3).
    public var effectiveUDPPayloadSize: Int { max(512, Int(udpPayloadSize)) }

    /// The upper eight bits of the response code.
    public var extendedResponseCode: UInt8 { bytes.uint8(at: layout.timeToLiveOffset) }

    /// The version of EDNS: 0 is the only one.
    public var version: UInt8 { bytes.uint8(at: layout.timeToLiveOffset + 1) }

    /// DO: signatures are wanted (RFC 3225).
    public var dnssecOK: Bool { bytes.uint8(at: layout.timeToLiveOffset + 2) & 0x80 != 0 }

    /// All options, undecoded.
    public var optionBytes: RawSpan {
        @_lifetime(copy self)
        get { bytes.extracting(layout.data) }
    }

    /// The options, one after the other.
    public var options: EDNSOptionCursor {
        @_lifetime(copy self)
        get { EDNSOptionCursor(optionBytes) }
    }

    /// The value of the first option with this code; nil when there is none.
    @_lifetime(copy self)
    public func value(of code: EDNSOptionCode) -> RawSpan? {
        var cursor = EDNSOptionCursor(optionBytes)
        while let option = cursor.next() {
            if option.code == code { return option.value }
        }
        return nil
    }

    /// The first extended error; nil when there is none or it has no code.
    public var extendedError: ExtendedErrorView? {
        @_lifetime(copy self)
        get {
            guard let value = value(of: .extendedError), value.byteCount >= 2 else { return nil }
            return ExtendedErrorView(value)
        }
    }

    /// The client's subnet; nil when there is none. Throws ``DNSMessageError/invalidClientSubnet`` when it has not the right form.
    public var clientSubnet: ClientSubnet? {
        get throws(DNSMessageError) {
            guard let value = value(of: .clientSubnet) else { return nil }
            return try ClientSubnet(parsing: value)
        }
    }

    /// The cookie; nil when there is none. Throws ``DNSMessageError/invalidCookie`` when none has such a length.
    public var cookie: EDNSCookie? {
        get throws(DNSMessageError) {
            guard let value = value(of: .cookie) else { return nil }
            return try EDNSCookie(parsing: value)
        }
    }

    /// The edns-tcp-keepalive option (RFC 7828); nil when there is none.
    public var tcpKeepalive: TCPKeepalive? {
        guard let value = value(of: .tcpKeepalive) else { return nil }
        return value.byteCount == 2 ? .timeout(tenthsOfSecond: value.bigEndianUInt16(at: 0)) : .request
    }

    /// The number of bytes of padding; nil when there is no such option.
    public var paddingLength: Int? { value(of: .padding)?.byteCount }
}

/// What an edns-tcp-keepalive option says (RFC 7828 §3.1).
public enum TCPKeepalive: Hashable, Sendable, BitwiseCopyable {
    /// A client asks how long its connection may be idle.
    case request
    /// A server says how long, in units of 100 ms.
    case timeout(tenthsOfSecond: UInt16)
}

/// An EDNS option.
public struct EDNSOptionView: ~Escapable {
    /// What it is.
    public let code: EDNSOptionCode
    /// Its value as it is on the wire.
    public let value: RawSpan

    @_lifetime(copy value)
    init(code: EDNSOptionCode, value: RawSpan) {
        self.code = code
        self.value = value
    }
}

/// The options of a checked OPT record, in the order of the message (RFC 6891 §6.1.2).
public struct EDNSOptionCursor: ~Escapable {
    private let bytes: RawSpan
    private var offset = 0

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) {
        self.bytes = bytes
    }

    /// The next option; nil behind the last one.
    @_lifetime(copy self)
    public mutating func next() -> EDNSOptionView? {
        guard offset < bytes.byteCount else { return nil }
        let start = offset + 4
        let end = start + Int(bytes.bigEndianUInt16(at: offset + 2))
        let code = EDNSOptionCode(rawValue: bytes.bigEndianUInt16(at: offset))
        offset = end
        return EDNSOptionView(code: code, value: bytes.extracting(start..<end))
    }

    /// Checks that the options are whole.
    static func check(_ bytes: RawSpan) throws(DNSMessageError) {
        var offset = 0
        while offset < bytes.byteCount {
            guard offset + 4 <= bytes.byteCount else { throw .truncatedOption }
            offset += 4 + Int(bytes.bigEndianUInt16(at: offset + 2))
            guard offset <= bytes.byteCount else { throw .truncatedOption }
        }
    }
}
