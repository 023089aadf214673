internal import ByteAccess
internal import CLDNS
public import DNSMessage
internal import IPPacket

/// A whole message as ldns has read it.
///
/// Only what a ``DNSMessageView`` has accepted reaches ldns: some inputs make it trap or leak. It is never written to the wire again;
/// the bytes that came are forwarded as they came.
@safe
public struct LDNSPacket: ~Copyable {
    private let packet: UnsafeMutablePointer<ldns_pkt>

    /// Lets ldns read a message that was checked, unless a record in it is of one of ``unreadableTypes``.
    public init(_ message: borrowing DNSMessageView) throws(LDNSError) {
        var records = message.records
        while let record = records.next() {
            for index in Self.unreadableTypes.indices where Self.unreadableTypes[index] == record.type.rawValue {
                throw .unreadableType(record.type)
            }
        }
        var packet: UnsafeMutablePointer<ldns_pkt>?
        let bytes = message.bytes
        // ldns reads `count` bytes and copies what it keeps.
        let status = unsafe bytes.withUnsafeBytes { bytes in
            unsafe ldns_wire2pkt(&packet, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        }
        guard status == LDNS_STATUS_OK else { throw .refused(LDNSStatus(status)) }
        guard let packet = unsafe packet else { throw .outOfMemory }
        unsafe self.packet = packet
    }

    deinit {
        // The packet is this value's own and goes away here, with all that is in it.
        unsafe ldns_pkt_free(packet)
    }

    /// Types whose data ldns does not read to its end. It takes the rest for the next record: that of NSAP-PTR (23), a name for RFC 1706,
    /// it takes for a string, of SINK (40) it reads the first byte alone, and of HIP (55) names in its own way. None of them concerns any
    /// policy, and a message with them can be forwarded without ldns.
    static let unreadableTypes: InlineArray<3, UInt16> = [23, 40, 55]

    /// The message as `dig` and `drill` show it: header, sections, and what ldns knows of EDNS.
    ///
    /// Some data cannot be shown in the form of its type: a CAA tag with a space in it, for one. All data is shown in the form for unknown
    /// types then (RFC 3597 §5).
    public var text: String {
        get throws(LDNSError) {
            guard let text = unsafe ldns_pkt2str(packet) ?? cldns_pkt2str_generic(packet) else { throw .outOfMemory }
            defer { unsafe cldns_free(text) }
            // ldns allocated the text and ended it in a zero; it is freed when it has been copied.
            return unsafe String(cString: text)
        }
    }

    /// What policy has to know.
    public var facts: AnswerFacts {
        get throws(LDNSError) {
            var facts = AnswerFacts()
            // The lists belong to the packet.
            unsafe try Self.collect(ldns_pkt_answer(packet), isAnswer: true, into: &facts)
            unsafe try Self.collect(ldns_pkt_authority(packet), isAnswer: false, into: &facts)
            unsafe try Self.collect(ldns_pkt_additional(packet), isAnswer: false, into: &facts)
            return facts
        }
    }

    private static func collect(
        _ list: UnsafeMutablePointer<ldns_rr_list>?, isAnswer: Bool, into facts: inout AnswerFacts
    ) throws(LDNSError) {
        for index in 0..<(unsafe ldns_rr_list_rr_count(list)) {
            // The index is below the count; the record belongs to the list.
            guard let record = unsafe ldns_rr_list_rr(list, index) else { continue }
            switch unsafe ldns_rr_get_type(record) {
            case LDNS_RR_TYPE_A:
                try unsafe withField(0, of: record, length: 4...4) { (field) throws(LDNSError) in
                    facts.addresses.append(.v4(field.ipv4Address(at: 0)))
                }
            case LDNS_RR_TYPE_AAAA:
                try unsafe withField(0, of: record, length: 16...16) { (field) throws(LDNSError) in
                    facts.addresses.append(.v6(field.ipv6Address(at: 0)))
                }
            case LDNS_RR_TYPE_CNAME, LDNS_RR_TYPE_DNAME:
                if isAnswer { facts.aliases.append(unsafe try name(0, of: record)) }
            case LDNS_RR_TYPE_SVCB, LDNS_RR_TYPE_HTTPS:
                let target = unsafe try name(1, of: record)
                if isAnswer, target != DomainName() { facts.serviceTargets.append(target) }
                // A record without parameters has no such field.
                guard unsafe ldns_rr_rd_count(record) > 2 else { continue }
                try unsafe withField(2, of: record, length: 0...65_535) { (field) throws(LDNSError) in
                    do throws(DNSMessageError) {
                        facts.addHints(of: try ServiceParameterCursor(checking: field))
                    } catch {
                        throw .malformed(error)
                    }
                }
            default: break
            }
        }
    }

    /// The name in a field, which ldns has without compression.
    private static func name(
        _ index: Int, of record: UnsafeMutablePointer<ldns_rr>
    ) throws(LDNSError) -> DomainName {
        var name = DomainName()
        try unsafe withField(index, of: record, length: 1...255) { (field) throws(LDNSError) in
            do throws(DNSMessageError) {
                name = DomainName(try DomainNameView(checking: field, at: 0))
            } catch {
                throw .malformed(error)
            }
        }
        return name
    }

    /// Gives `body` the bytes of a field of a record's data, once their number is one that the field can have.
    private static func withField(
        _ index: Int, of record: UnsafeMutablePointer<ldns_rr>, length: ClosedRange<Int>,
        _ body: (RawSpan) throws(LDNSError) -> Void
    ) throws(LDNSError) {
        guard unsafe index < ldns_rr_rd_count(record), let field = unsafe ldns_rr_rdf(record, index) else {
            throw .malformed(.invalidRecordDataLength)
        }
        let count = unsafe ldns_rdf_size(field)
        guard length.contains(count) else { throw .malformed(.invalidRecordDataLength) }
        // The field belongs to the record, which outlives the call, and has `count` bytes.
        let buffer = unsafe UnsafeRawBufferPointer(start: ldns_rdf_data(field), count: count)
        try unsafe body(buffer.bytes)
    }
}
