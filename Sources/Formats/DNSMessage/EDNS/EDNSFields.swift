import ByteAccess

/// An OPT record to be written (RFC 6891 §6.1). Its options are few and known; what others send is not passed on
/// (RFC 6891 §6.2.6).
public struct EDNSFields: Sendable {
    /// The size in bytes that is used in both directions unless a network needs another (RFC 9715).
    @inlinable public static var defaultUDPPayloadSize: UInt16 { 1232 }
    /// The block that queries are padded to in bytes (RFC 8467 §4.1).
    @inlinable public static var queryPaddingBlock: Int { 128 }
    /// The block that answers are padded to in bytes (RFC 8467 §4.1).
    @inlinable public static var answerPaddingBlock: Int { 468 }

    /// The size in bytes that the sender can take by UDP.
    public var udpPayloadSize: UInt16
    /// DO: signatures are wanted, or were (RFC 3225).
    public var dnssecOK: Bool
    /// Why the answer is what it is.
    public var extendedError: ExtendedError?
    /// How long a connection may be idle; never by UDP (RFC 7828 §3.2).
    public var tcpKeepalive: TCPKeepalive?
    /// A part of the client's address.
    public var clientSubnet: ClientSubnet?
    /// A cookie.
    public var cookie: EDNSCookie?
    /// The number of bytes that the message is to be a multiple of; never without encryption (RFC 7830 §6).
    public var paddingBlock: Int?

    /// An OPT record without options.
    public init(udpPayloadSize: UInt16 = Self.defaultUDPPayloadSize, dnssecOK: Bool = false) {
        self.udpPayloadSize = udpPayloadSize
        self.dnssecOK = dnssecOK
    }

    /// The length of the record without EXTRA-TEXT and padding.
    var minimumLength: Int {
        var length = 11
        if extendedError != nil { length += 6 }
        switch tcpKeepalive {
        case .request: length += 4
        case .timeout: length += 6
        case nil: break
        }
        if let clientSubnet { length += 4 + clientSubnet.valueLength }
        if let cookie { length += 4 + cookie.bytes.byteCount }
        return length
    }

    /// Writes the record at `offset`, which is the end of the message so far. It may go up to `limit`; EXTRA-TEXT is left out when
    /// it does not fit, and padding is cut.
    ///
    /// - Returns: The offset behind it; nil when even the least that it needs does not fit.
    func write(
        into output: inout MutableRawSpan, at offset: Int, limit: Int, responseCode: ResponseCode
    ) -> Int? {
        let limit = min(limit, output.byteCount, DNSMessageView.maximumByteCount)
        guard minimumLength <= limit - offset else { return nil }
        output.store(0, at: offset)
        output.storeBigEndian(RecordType.opt.rawValue, at: offset + 1)
        output.storeBigEndian(udpPayloadSize, at: offset + 3)
        output.store(responseCode.extendedBits, at: offset + 5)
        output.store(0, at: offset + 6)
        output.storeBigEndian(dnssecOK ? 0x8000 as UInt16 : 0, at: offset + 7)

        var position = offset + 11
        // What the text may take is what nothing else needs.
        let textLimit = limit - minimumLength - offset
        if let extendedError {
            let text = extendedError.text.utf8.count <= textLimit ? extendedError.text : ""
            let valueLength = 2 + text.utf8.count
            Self.storeOption(.extendedError, length: valueLength, into: &output, at: &position)
            output.storeBigEndian(extendedError.code.rawValue, at: position)
            for (index, octet) in text.utf8.enumerated() { output.store(octet, at: position + 2 + index) }
            position += valueLength
        }
        switch tcpKeepalive {
        case .request:
            Self.storeOption(.tcpKeepalive, length: 0, into: &output, at: &position)
        case .timeout(let tenths):
            Self.storeOption(.tcpKeepalive, length: 2, into: &output, at: &position)
            output.storeBigEndian(tenths, at: position)
            position += 2
        case nil: break
        }
        if let clientSubnet {
            Self.storeOption(.clientSubnet, length: clientSubnet.valueLength, into: &output, at: &position)
            clientSubnet.store(into: &output, at: position)
            position += clientSubnet.valueLength
        }
        if let cookie {
            Self.storeOption(.cookie, length: cookie.bytes.byteCount, into: &output, at: &position)
            output.copy(cookie.bytes, to: position)
            position += cookie.bytes.byteCount
        }
        if let paddingBlock, paddingBlock > 0, position + 4 <= limit {
            let whole = (position + 4 + paddingBlock - 1) / paddingBlock * paddingBlock
            let length = min(whole, limit) - position - 4
            Self.storeOption(.padding, length: length, into: &output, at: &position)
            output.zero(from: position, count: length)
            position += length
        }
        output.storeBigEndian(UInt16(truncatingIfNeeded: position - offset - 11), at: offset + 9)
        return position
    }

    private static func storeOption(
        _ code: EDNSOptionCode, length: Int, into output: inout MutableRawSpan, at position: inout Int
    ) {
        output.storeBigEndian(code.rawValue, at: position)
        output.storeBigEndian(UInt16(truncatingIfNeeded: length), at: position + 2)
        position += 4
    }
}
