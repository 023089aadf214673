internal import CLDNS
public import DNSMessage

/// Why ldns did not do what it was asked for.
public enum LDNSError: Error, Hashable, Sendable {
    /// ldns does not take the message or the text.
    case refused(LDNSStatus)
    /// The message has a record of a type whose data ldns reads otherwise than its standard has it, going on in the middle of it.
    case unreadableType(RecordType)
    /// What ldns made is not in order.
    case malformed(DNSMessageError)
    /// The text holds a zero or a line break, so that it is not one record.
    case notOneLine
    /// ldns could not allocate.
    case outOfMemory
}

/// A status of ldns.
public struct LDNSStatus: Hashable, Sendable {
    /// The number in ldns's own list.
    public let rawValue: UInt32

    init(_ status: ldns_status) {
        rawValue = status.rawValue
    }
}

extension LDNSStatus: CustomStringConvertible {
    /// ldns's own words.
    public var description: String {
        // ldns keeps these texts for as long as the process lives; an unknown number has none.
        guard let text = unsafe ldns_get_errorstr_by_id(ldns_status(rawValue)) else { return "status \(rawValue)" }
        return unsafe String(cString: text)
    }
}
