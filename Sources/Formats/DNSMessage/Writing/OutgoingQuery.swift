import ByteAccess

/// A query to be sent to another server.
public struct OutgoingQuery: Sendable {
    /// The ID: 0 over HTTPS (RFC 8484 §4.1), as random as can be by UDP (RFC 5452 §9.2).
    public var id: UInt16
    /// CD of the client's query.
    public var checkingDisabled: Bool
    /// True when AD of the answer counts (RFC 6840 §5.7).
    public var wantsAuthenticData: Bool
    /// The OPT record; nil to send none.
    public var edns: EDNSFields?

    /// A query that asks for recursion.
    public init(
        id: UInt16, checkingDisabled: Bool = false, wantsAuthenticData: Bool = false, edns: EDNSFields? = EDNSFields()
    ) {
        self.id = id
        self.checkingDisabled = checkingDisabled
        self.wantsAuthenticData = wantsAuthenticData
        self.edns = edns
    }

    /// Writes the query. The name's letters are as they are; ``MessageEditing/mixQuestionCase(in:entropy:)`` mixes them.
    ///
    /// - Returns: The length of the query in bytes.
    public func write(
        _ name: borrowing DomainNameView, type: RecordType, recordClass: RecordClass = .internet,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        var flags: DNSFlags = .recursionDesired
        if checkingDisabled { flags.insert(.checkingDisabled) }
        if wantsAuthenticData { flags.insert(.authenticData) }
        guard output.byteCount >= DNSHeader.byteCount else { throw .outputTooSmall }
        // There is nothing that a name could be compressed against.
        var end = try name.write(into: &output, at: DNSHeader.byteCount)
        guard output.byteCount - end >= 4 else { throw .outputTooSmall }
        output.storeBigEndian(type.rawValue, at: end)
        output.storeBigEndian(recordClass.rawValue, at: end + 2)
        end += 4
        var header = DNSHeader(id: id, flags: flags)
        if let edns {
            guard let endOfEDNS = edns.write(into: &output, at: end, limit: output.byteCount, responseCode: .noError)
            else { throw .outputTooSmall }
            header.additionalCount = 1
            end = endOfEDNS
        }
        header.store(into: &output)
        return end
    }
}
