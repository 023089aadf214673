import ByteAccess

/// A record on its own, as configuration makes them.
public struct ResourceRecord: Hashable, Sendable {
    /// The name that it belongs to.
    public var owner: DomainName
    /// TYPE.
    public var type: RecordType
    /// CLASS.
    public var recordClass: RecordClass
    /// The seconds that it may be kept.
    public var timeToLive: UInt32
    /// RDATA, with no name in it compressed.
    public var data: [UInt8]

    /// A record of class IN unless it is said to be of another.
    ///
    /// - Parameter data: RDATA as its type has it, with no name in it compressed.
    public init(
        owner: DomainName, type: RecordType, recordClass: RecordClass = .internet, timeToLive: UInt32, data: [UInt8]
    ) {
        self.owner = owner
        self.type = type
        self.recordClass = recordClass
        self.timeToLive = timeToLive
        self.data = data
    }

    /// A copy of a record of a checked message. Its names must not be compressed.
    public init(_ record: borrowing RecordView) {
        owner = DomainName(record.owner)
        type = record.type
        recordClass = record.recordClass
        timeToLive = record.timeToLive
        let data = record.data
        self.data = (0..<data.byteCount).map { data.uint8(at: $0) }
    }
}

extension MessageWriter {
    /// Writes a record of configuration.
    public mutating func append(
        _ record: borrowing ResourceRecord, section: MessageSection = .answer, into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        try append(
            owner: record.owner.view, type: record.type, recordClass: record.recordClass,
            timeToLive: record.timeToLive, data: record.data.span.octets, section: section, into: &output)
    }
}
