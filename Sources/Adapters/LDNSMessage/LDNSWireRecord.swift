internal import ByteAccess
internal import CLDNS
internal import DNSMessage
internal import IPPacket

/// One record of a checked message, as ldns has read it where it is. Of a whole packet ldns would make lists besides, which nobody needs.
@safe
struct LDNSWireRecord: ~Copyable {
    private let record: UnsafeMutablePointer<ldns_rr>

    /// Lets ldns read a record of a message. It has to end where the view found its end.
    init(_ layout: RecordLayout, of message: borrowing DNSMessageView) throws(LDNSError) {
        for index in LDNSPacket.unreadableTypes.indices
        where LDNSPacket.unreadableTypes[index] == layout.type.rawValue {
            throw .unreadableType(layout.type)
        }
        let section =
            switch layout.section {
            case .answer: LDNS_SECTION_ANSWER
            case .authority: LDNS_SECTION_AUTHORITY
            case .additional: LDNS_SECTION_ADDITIONAL
            }
        var record: UnsafeMutablePointer<ldns_rr>?
        var position = layout.offset
        let bytes = message.bytes
        // ldns reads `count` bytes at most, and copies what it keeps.
        let status = unsafe bytes.withUnsafeBytes { bytes in
            unsafe ldns_wire2rr(
                &record, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, &position, section)
        }
        guard status == LDNS_STATUS_OK else { throw .refused(LDNSStatus(status)) }
        guard let record = unsafe record else { throw .outOfMemory }
        guard position == layout.endOffset else {
            unsafe ldns_rr_free(record)
            throw .malformed(.invalidRecordDataLength)
        }
        unsafe self.record = record
    }

    deinit {
        // The record is this value's own and goes away here, with all that is in it.
        unsafe ldns_rr_free(record)
    }

    /// Adds what policy has to know of the record.
    func collect(isAnswer: Bool, into facts: inout AnswerFacts) throws(LDNSError) {
        switch unsafe ldns_rr_get_type(record) {
        case LDNS_RR_TYPE_A:
            try withField(0, length: 4...4) { (field) throws(LDNSError) in
                facts.addresses.append(.v4(field.ipv4Address(at: 0)))
            }
        case LDNS_RR_TYPE_AAAA:
            try withField(0, length: 16...16) { (field) throws(LDNSError) in
                facts.addresses.append(.v6(field.ipv6Address(at: 0)))
            }
        case LDNS_RR_TYPE_CNAME, LDNS_RR_TYPE_DNAME:
            if isAnswer { facts.aliases.append(try name(0)) }
        case LDNS_RR_TYPE_SVCB, LDNS_RR_TYPE_HTTPS:
            let target = try name(1)
            if isAnswer, target != DomainName() { facts.serviceTargets.append(target) }
            // A record without parameters has no such field.
            guard unsafe ldns_rr_rd_count(record) > 2 else { return }
            try withField(2, length: 0...65_535) { (field) throws(LDNSError) in
                do throws(DNSMessageError) {
                    facts.addHints(of: try ServiceParameterCursor(checking: field))
                } catch {
                    throw .malformed(error)
                }
            }
        default: break
        }
    }

    /// The name in a field, which ldns has without compression.
    private func name(_ index: Int) throws(LDNSError) -> DomainName {
        var name = DomainName()
        try withField(index, length: 1...255) { (field) throws(LDNSError) in
            do throws(DNSMessageError) {
                name = DomainName(try DomainNameView(checking: field, at: 0))
            } catch {
                throw .malformed(error)
            }
        }
        return name
    }

    /// Gives `body` the bytes of a field of the record's data, once their number is one that the field can have.
    private func withField(
        _ index: Int, length: ClosedRange<Int>, _ body: (RawSpan) throws(LDNSError) -> Void
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
