internal import CLDNS
public import DNSMessage

extension RecordType {
    /// The name of the IANA registry, `AAAA` for one, as far as ldns knows it, or `TYPE65280` (RFC 3597 §5).
    public var name: String {
        // ldns allocates the text, and gives nothing only when there is no memory.
        guard let text = unsafe ldns_rr_type2str(ldns_rr_type(UInt32(rawValue))) else { return "TYPE\(rawValue)" }
        defer { unsafe cldns_free(text) }
        return unsafe String(cString: text)
    }
}
