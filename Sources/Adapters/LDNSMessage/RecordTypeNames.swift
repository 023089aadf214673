internal import CLDNS
public import DNSMessage

extension RecordType {
    /// The type with a name of the IANA registry, `AAAA` for one, or of the form `TYPE65280` (RFC 3597 §5), in any case; nil for anything
    /// else.
    public init?(name: String) {
        let digits = name.dropFirst(4)
        if name.prefix(4).uppercased() == "TYPE", !digits.isEmpty {
            guard digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
                let number = UInt16(digits)
            else { return nil }
            self.init(rawValue: number)
            return
        }
        guard name.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else { return nil }
        // ldns reads the text up to its zero. The number 0 stands for none.
        let type = unsafe ldns_get_rr_type_by_name(name)
        guard let number = UInt16(exactly: type.rawValue), number != 0 else { return nil }
        self.init(rawValue: number)
    }
}
