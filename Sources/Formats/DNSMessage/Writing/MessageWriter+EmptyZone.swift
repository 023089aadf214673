import ByteAccess

extension MessageWriter {
    /// Writes the SOA record of a zone that has nothing of what was asked for, to the authority section. Its TTL and its MINIMUM are
    /// the same: for so many seconds that may be kept (RFC 2308 §3 and §5).
    public mutating func append(
        emptyZone zone: borrowing DomainNameView, recordClass: RecordClass = .internet, timeToLive: UInt32,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        try append(
            emptyZone: zone.walk(from: 0), of: zone.bytes, recordClass: recordClass, timeToLive: timeToLive,
            into: &output)
    }

    /// As the other; the zone's name begins somewhere within `bytes`.
    mutating func append(
        emptyZone zone: LabelWalk, of bytes: RawSpan, recordClass: RecordClass, timeToLive: UInt32,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        try appendRecord(bytes, zone, .soa, recordClass, timeToLive, .authority, into: &output) {
            (writer, output, position) throws(DNSMessageError) in
            // The fields are those that RFC 6303 §3 gives to empty zones; MNAME is the zone itself.
            try writer.write(bytes, zone, compressed: true, into: &output, at: &position)
            let mailbox = DomainName.nobody
            try writer.write(mailbox.bytes, LabelWalk(at: 0), compressed: true, into: &output, at: &position)
            try writer.reserve(20, at: position, in: output)
            output.storeBigEndian(1 as UInt32, at: position)
            output.storeBigEndian(3600 as UInt32, at: position + 4)
            output.storeBigEndian(1200 as UInt32, at: position + 8)
            output.storeBigEndian(604_800 as UInt32, at: position + 12)
            output.storeBigEndian(timeToLive, at: position + 16)
            position += 20
        }
    }
}
