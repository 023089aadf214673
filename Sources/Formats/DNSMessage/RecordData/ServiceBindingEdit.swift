import ByteAccess

/// What is taken out of SVCB and HTTPS records before a client gets to see them (RFC 9460).
///
/// A record that only names another one (priority 0) is never changed: what parameters it has are ignored anyway (§2.4.2).
public struct ServiceBindingEdit: Hashable, Sendable {
    /// Parameters that go, whatever their values are.
    public var omittedKeys: ServiceParameterKeys
    /// Protocols that go from `alpn`, as they are on the wire: identifiers of TLS (RFC 7301 §3.1).
    public var omittedProtocols: [[UInt8]]

    /// Takes out some parameters, and some protocols.
    public init(omittedKeys: ServiceParameterKeys = [], omittedProtocols: [[UInt8]] = []) {
        self.omittedKeys = omittedKeys
        self.omittedProtocols = omittedProtocols
    }

    /// True when nothing is taken out.
    public var isEmpty: Bool { omittedKeys.isEmpty && omittedProtocols.isEmpty }

    /// What an edit makes of a record.
    public enum Effect: Hashable, Sendable {
        /// It stays as it is.
        case unchanged
        /// It loses parameters, or a part of them.
        case changed
        /// No client could use what is left of it: it has to go as a whole.
        case unusable
    }

    /// What the edit makes of a checked record.
    ///
    /// When no protocol is left, HTTPS falls back to its default one, which is HTTP/1.1 (§9). That is no way out when the record says
    /// that the default is not spoken (§7.1.1), or that a client must not use it without knowing `alpn` (§8), nor for SVCB, whose
    /// schemes have other defaults or none (RFC 9461 §4.1).
    public func effect(on record: borrowing RecordView) -> Effect {
        guard record.type == .svcb || record.type == .https, !record.isServiceAlias else { return .unchanged }
        var isChanged = false
        var losesProtocols = false
        var needsProtocols = record.type == .svcb
        var parameters = record.serviceParameters
        while let parameter = parameters.next() {
            switch parameter.key {
            case .mandatory:
                if parameter.lists(.alpn) { needsProtocols = true }
            case .alpn:
                let kept = keptLength(of: parameter.value)
                losesProtocols = kept == 0
                if kept != parameter.value.byteCount { isChanged = true }
            case .noDefaultALPN: needsProtocols = true
            default: break
            }
            if omittedKeys.contains(parameter.key) { isChanged = true }
        }
        if losesProtocols, needsProtocols { return .unusable }
        return isChanged ? .changed : .unchanged
    }

    /// The parameters that go of a whole list. When `alpn` goes, that the default protocol is not spoken goes too, since it says
    /// nothing alone (RFC 9460 §7.1.1).
    func allOmittedKeys(of parameters: RawSpan) -> ServiceParameterKeys {
        var cursor = ServiceParameterCursor(parameters)
        while let parameter = cursor.next() {
            if parameter.key == .alpn, keptLength(of: parameter.value) == 0 {
                return omittedKeys.union([.alpn, .noDefaultALPN])
            }
        }
        return omittedKeys
    }

    /// How many bytes of the value of `alpn` stay.
    func keptLength(of protocols: RawSpan) -> Int {
        guard !omittedKeys.contains(.alpn) else { return 0 }
        var length = 0
        var cursor = ApplicationProtocolCursor(protocols)
        while let identifier = cursor.next() {
            if keeps(identifier) { length += 1 + identifier.byteCount }
        }
        return length
    }

    /// True for a protocol that stays in `alpn`.
    func keeps(_ identifier: RawSpan) -> Bool {
        !omittedProtocols.contains { $0.span.octets.hasSameBytes(as: identifier) }
    }
}

extension ServiceParameterView {
    /// True when this is `mandatory` and has a key in its list (RFC 9460 §8).
    public func lists(_ other: ServiceParameterKey) -> Bool {
        guard key == .mandatory else { return false }
        for offset in stride(from: 0, to: value.byteCount, by: 2) {
            if value.bigEndianUInt16(at: offset) == other.rawValue { return true }
        }
        return false
    }

    /// The protocols of `alpn`; none for others.
    public var applicationProtocols: ApplicationProtocolCursor {
        @_lifetime(copy self)
        get { ApplicationProtocolCursor(key == .alpn ? value : value.extracting(last: 0)) }
    }
}

/// The protocols of a checked `alpn`, one after the other: each with its length in a byte (RFC 9460 §7.1.1).
public struct ApplicationProtocolCursor: ~Escapable {
    private let bytes: RawSpan
    private var offset = 0

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) {
        self.bytes = bytes
    }

    /// The octets of the next identifier, 1 to 255; nil behind the last one.
    @_lifetime(copy self)
    public mutating func next() -> RawSpan? {
        guard offset < bytes.byteCount else { return nil }
        let start = offset + 1
        offset = start + Int(bytes.uint8(at: offset))
        return bytes.extracting(start..<offset)
    }
}
