internal import ByteAccess
internal import DNSProxy

/// What counts of the header fields of a response.
struct ResponseHead: Hashable {
    /// The status; 0 before it has come.
    var status = 0
    /// True when there is a media type, and it is that of DNS messages.
    private(set) var isMessage = false
    /// The field `age` in seconds (RFC 9111 §5.1).
    private(set) var age: UInt32 = 0
    /// `max-age` of the field `cache-control`, in seconds (RFC 9111 §5.2.2.1).
    private(set) var maximumAge: UInt32?
    /// True when it is not to be kept at all.
    private(set) var isUncacheable = false
    /// How long names and values are.
    private(set) var byteCount = 0

    /// How old the response is, and for how many seconds more it is fresh.
    var freshness: AnswerFreshness {
        AnswerFreshness(age: age, lifetime: isUncacheable ? 0 : maximumAge.map { $0 > age ? $0 - age : 0 })
    }

    /// Takes a field, whose name is in lower case.
    mutating func add(_ name: RawSpan, _ value: RawSpan) {
        byteCount += name.byteCount + value.byteCount
        if name.isText(":status") {
            status = Int(Self.number(value) ?? 0)
        } else if name.isText("content-type") {
            isMessage = Self.isMessageType(value)
        } else if name.isText("age") {
            age = Self.number(value) ?? 0
        } else if name.isText("cache-control") {
            takeDirectives(value)
        }
    }

    /// Reads the directives one after the other.
    private mutating func takeDirectives(_ value: RawSpan) {
        var start = 0
        while start < value.byteCount {
            var end = start
            while end < value.byteCount, value.uint8(at: end) != UInt8(ascii: ",") { end += 1 }
            let directive = Self.trimmed(value.extracting(start..<end))
            if directive.isText("no-store") || directive.isText("no-cache") {
                isUncacheable = true
            } else if directive.byteCount > 8, directive.extracting(..<8).isText("max-age=") {
                maximumAge = Self.number(directive.extracting(8...)) ?? 0
            }
            start = end + 1
        }
    }

    /// True for `application/dns-message`, in any case, with parameters or none.
    static func isMessageType(_ value: RawSpan) -> Bool {
        var end = 0
        while end < value.byteCount, value.uint8(at: end) != UInt8(ascii: ";") { end += 1 }
        return trimmed(value.extracting(..<end)).isText("application/dns-message")
    }

    @_lifetime(copy text)
    private static func trimmed(_ text: RawSpan) -> RawSpan {
        var (start, end) = (0, text.byteCount)
        while start < end, text.uint8(at: start).isBlank { start += 1 }
        while end > start, text.uint8(at: end - 1).isBlank { end -= 1 }
        return text.extracting(start..<end)
    }

    /// The number that decimal digits spell: the greatest there is when it is too great (RFC 9111 §1.2.2). Nil for anything else.
    private static func number(_ text: RawSpan) -> UInt32? {
        guard !text.isEmpty else { return nil }
        var number: UInt32 = 0
        for offset in text.byteOffsets {
            let digit = text.uint8(at: offset) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            let (tens, isTooGreat) = number.multipliedReportingOverflow(by: 10)
            let (sum, isGreater) = tens.addingReportingOverflow(UInt32(digit))
            number = isTooGreat || isGreater ? .max : sum
        }
        return number
    }
}

extension RawSpan {
    /// True when these are the bytes of an ASCII text in lower case; the case of ours does not count.
    func isText(_ text: StaticString) -> Bool {
        guard text.utf8CodeUnitCount == byteCount else { return false }
        return text.withUTF8Buffer { text in
            for offset in byteOffsets {
                let octet = uint8(at: offset)
                let isUpper = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= octet
                // As many bytes as there are here: see above.
                guard unsafe text[offset] == (isUpper ? octet | 0x20 : octet) else { return false }
            }
            return true
        }
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }
}
