import ByteAccess

/// What answers are kept under: the question's name in lower case, its type and class, DO and CD. Answers that differ in one of
/// these may differ themselves (RFC 4035 §3.2.2 and §4.7).
public struct CacheKey: Hashable, Sendable {
    /// The most bytes that a key has.
    public static var maximumByteCount: Int { 260 }

    private var octets = InlineArray<260, UInt8>(repeating: 0)
    private var count = 0

    /// The key of a question that is asked with or without DO and CD.
    public init(_ question: borrowing QuestionView, dnssecOK: Bool, checkingDisabled: Bool) {
        octets[0] = Self.flags(dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
        var span = octets.mutableSpan
        var output = span.mutableOctets
        output.storeBigEndian(question.type.rawValue, at: 1)
        output.storeBigEndian(question.recordClass.rawValue, at: 3)
        // A checked name has 255 octets at most: it fits behind the five.
        guard let end = try? question.name.write(into: &output, at: 5, lowercased: true) else { return }
        count = end
    }

    /// The key of a client's query.
    public init(_ query: borrowing QueryView) {
        self.init(
            query.question, dnssecOK: query.dnssecOK, checkingDisabled: query.header.flags.contains(.checkingDisabled))
    }

    /// DO in the lowest bit and CD in the next.
    public var flags: UInt8 { octets[0] }

    /// The flags of the key of a client's query.
    public static func flags(of query: borrowing QueryView) -> UInt8 {
        flags(dnssecOK: query.dnssecOK, checkingDisabled: query.header.flags.contains(.checkingDisabled))
    }

    /// The flags of the key of one of several answers to a question: those that servers make for different networks (RFC 7871 §7.3.1).
    ///
    /// - Parameter number: 0 to 63; 0 is the question's own key.
    public static func flags(_ flags: UInt8, number: UInt8) -> UInt8 {
        precondition(number < 64)
        return flags | number << 2
    }

    private static func flags(dnssecOK: Bool, checkingDisabled: Bool) -> UInt8 {
        (dnssecOK ? 1 : 0) | (checkingDisabled ? 2 : 0)
    }

    /// The key as bytes: flags, type, class, name. Equal keys have equal bytes.
    public var bytes: RawSpan {
        @_lifetime(borrow self)
        get { octets.span.octets.extracting(..<count) }
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.bytes.hasSameBytes(as: right.bytes)
    }

    public func hash(into hasher: inout Hasher) {
        // The bytes are this value's own, and all of them are set.
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
}
