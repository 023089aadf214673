import ByteAccess
public import IPPacket

/// A parameter of an SVCB or HTTPS record.
public struct ServiceParameterView: ~Escapable {
    /// What it is.
    public let key: ServiceParameterKey
    /// Its value as it is on the wire.
    public let value: RawSpan

    @_lifetime(copy value)
    init(key: ServiceParameterKey, value: RawSpan) {
        self.key = key
        self.value = value
    }

    /// The number of addresses of `ipv4hint` or `ipv6hint`; 0 for others.
    public var addressCount: Int {
        switch key {
        case .ipv4Hint: value.byteCount / 4
        case .ipv6Hint: value.byteCount / 16
        default: 0
        }
    }

    /// An address of `ipv4hint` or `ipv6hint`. Traps unless the index is below ``addressCount``.
    public func address(at index: Int) -> IPAddress {
        precondition(index >= 0 && index < addressCount, "no such address")
        return key == .ipv4Hint ? .v4(value.ipv4Address(at: 4 * index)) : .v6(value.ipv6Address(at: 16 * index))
    }

    /// The port of `port`; nil for others.
    public var port: UInt16? { key == .port ? value.bigEndianUInt16(at: 0) : nil }
}

/// The parameters of a checked SVCB or HTTPS record, in the order of their keys (RFC 9460 §2.2).
public struct ServiceParameterCursor: ~Escapable {
    private let bytes: RawSpan
    private var offset = 0

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) {
        self.bytes = bytes
    }

    /// The parameters in `bytes`, which are checked first.
    @_lifetime(copy bytes)
    public init(checking bytes: RawSpan) throws(DNSMessageError) {
        try Self.check(bytes)
        self.bytes = bytes
    }

    /// The next parameter; nil behind the last one.
    @_lifetime(copy self)
    public mutating func next() -> ServiceParameterView? {
        guard offset < bytes.byteCount else { return nil }
        let start = offset + 4
        let end = start + Int(bytes.bigEndianUInt16(at: offset + 2))
        let key = ServiceParameterKey(rawValue: bytes.bigEndianUInt16(at: offset))
        offset = end
        return ServiceParameterView(key: key, value: bytes.extracting(start..<end))
    }

    /// Checks that keys ascend, that values are whole and that those of known keys have their form.
    static func check(_ bytes: RawSpan) throws(DNSMessageError) {
        var offset = 0
        var lowestKey = 0
        while offset < bytes.byteCount {
            guard offset + 4 <= bytes.byteCount else { throw .invalidServiceParameters }
            let key = bytes.bigEndianUInt16(at: offset)
            let start = offset + 4
            offset = start + Int(bytes.bigEndianUInt16(at: offset + 2))
            guard Int(key) >= lowestKey, offset <= bytes.byteCount else { throw .invalidServiceParameters }
            lowestKey = Int(key) + 1
            guard isValid(bytes.extracting(start..<offset), for: ServiceParameterKey(rawValue: key)) else {
                throw .invalidServiceParameterValue
            }
        }
    }

    private static func isValid(_ value: RawSpan, for key: ServiceParameterKey) -> Bool {
        let count = value.byteCount
        switch key {
        case .mandatory: return isValidMandatory(value)
        case .alpn: return isValidALPN(value)
        case .noDefaultALPN: return count == 0
        case .port: return count == 2
        case .ipv4Hint: return count > 0 && count % 4 == 0
        case .ech, .dohPath: return count > 0
        case .ipv6Hint: return count > 0 && count % 16 == 0
        default: return true
        }
    }

    /// Keys of two bytes that ascend and are not 0 (RFC 9460 §8).
    private static func isValidMandatory(_ value: RawSpan) -> Bool {
        guard value.byteCount > 0, value.byteCount % 2 == 0 else { return false }
        var previous: UInt16 = 0
        for offset in stride(from: 0, to: value.byteCount, by: 2) {
            let key = value.bigEndianUInt16(at: offset)
            guard key > previous else { return false }
            previous = key
        }
        return true
    }

    /// One protocol or more, each with its length in a byte, none empty (RFC 9460 §7.1).
    private static func isValidALPN(_ value: RawSpan) -> Bool {
        guard value.byteCount > 0 else { return false }
        var offset = 0
        while offset < value.byteCount {
            let length = Int(value.uint8(at: offset))
            guard length > 0 else { return false }
            offset += 1 + length
        }
        return offset == value.byteCount
    }
}

extension RecordView {
    /// The parameters of an SVCB or HTTPS record; none for others.
    public var serviceParameters: ServiceParameterCursor {
        @_lifetime(copy self)
        get {
            guard layout.type == .svcb || layout.type == .https else {
                return ServiceParameterCursor(data.extracting(last: 0))
            }
            return ServiceParameterCursor(
                bytes.extracting(name(at: layout.data.lowerBound + 2).layout.endOffset..<layout.data.upperBound))
        }
    }

    /// True when an SVCB or HTTPS record only names another one: its priority is 0 (RFC 9460 §2.4.2).
    public var isServiceAlias: Bool { (layout.type == .svcb || layout.type == .https) && priority == 0 }
}
