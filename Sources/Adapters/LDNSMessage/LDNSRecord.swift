internal import ByteAccess
internal import CLDNS
public import DNSMessage

/// A record that ldns has read from the form of zone files.
@safe
private struct LDNSRecord: ~Copyable {
    let record: UnsafeMutablePointer<ldns_rr>

    /// Reads one line: owner, TTL, class, type and data. Names without a dot at the end are whole as well.
    init(parsing text: String, defaultTimeToLive: UInt32) throws(LDNSError) {
        guard text.utf8.allSatisfy({ $0 != 0 && $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }) else {
            throw .notOneLine
        }
        var record: UnsafeMutablePointer<ldns_rr>?
        // The text has no zero but the one at its end; without an origin and without a previous owner ldns keeps nothing.
        let status = unsafe ldns_rr_new_frm_str(&record, text, defaultTimeToLive, nil, nil)
        guard status == LDNS_STATUS_OK else { throw .refused(LDNSStatus(status)) }
        guard let record = unsafe record else { throw .outOfMemory }
        unsafe self.record = record
    }

    deinit {
        // The record is this value's own and goes away here.
        unsafe ldns_rr_free(record)
    }

    /// Gives `body` a message of an empty header and this record in the answer section.
    func withMessage<Result>(_ body: (RawSpan) throws(LDNSError) -> Result) throws(LDNSError) -> Result {
        var wire: UnsafeMutablePointer<UInt8>?
        var count = 0
        let status = unsafe ldns_rr2wire(&wire, record, Int32(LDNS_SECTION_ANSWER.rawValue), &count)
        defer { unsafe cldns_free(wire) }
        guard status == LDNS_STATUS_OK else { throw .refused(LDNSStatus(status)) }
        guard let wire = unsafe wire else { throw .outOfMemory }
        var message: [UInt8] = [0, 0, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0]
        // ldns allocated `count` bytes and wrote all of them; they are freed when they have been copied.
        unsafe message.append(contentsOf: UnsafeBufferPointer(start: wire, count: count))
        return try body(message.span.octets)
    }
}

extension ResourceRecord {
    /// Reads a record from the form of zone files with ldns, `www.example.com. 300 IN A 192.0.2.1` for one, and checks what it has made
    /// of it.
    ///
    /// - Parameter defaultTimeToLive: The TTL in seconds of a text that has none; 0 stands for ldns's own, an hour.
    public init(parsing text: String, defaultTimeToLive: UInt32 = 3600) throws(LDNSError) {
        self = try LDNSRecord(parsing: text, defaultTimeToLive: defaultTimeToLive).withMessage {
            (message) throws(LDNSError) in
            do throws(DNSMessageError) {
                let view = try DNSMessageView(checking: message)
                var records = view.records
                guard let record = records.next() else { throw .truncatedRecord }
                return ResourceRecord(record)
            } catch {
                throw .malformed(error)
            }
        }
    }
}
