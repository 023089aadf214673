internal import ByteAccess
public import DNSMessage

/// Names with their records, as the configuration has them: built once, and found without an allocation.
///
/// A name whose first label is `*` stands for all names below the rest that have no records of their own, however deep; of two such names
/// the longer counts.
public struct LocalNames: Sendable {
    /// A record, and where the next one of the same name is.
    struct Record: Sendable {
        var type: RecordType
        /// In seconds.
        var timeToLive: UInt32
        var start: Int
        var count: Int
        var next: Int32
    }

    /// What is instead of the place of a next record behind the last.
    private static let end: Int32 = -1

    private var names = NameTable<Int32>([])
    private var wildcards = NameTable<Int32>([])
    /// All records, those of a name in the order in which they came.
    private(set) var records: [Record] = []
    /// Their data.
    private(set) var octets: [UInt8] = []

    /// The most records that a name may have.
    public static let maximumRecordCount = 4096

    /// No names.
    public init() {}

    /// True when there are none.
    public var isEmpty: Bool { records.isEmpty }
    /// How many names there are.
    public var nameCount: Int { names.count + wildcards.count }
    /// How many records there are.
    public var recordCount: Int { records.count }

    /// Adds a record. A throw leaves everything as it was.
    public mutating func add(_ record: ResourceRecord) throws(LocalRecordError) {
        guard record.recordClass == .internet else { throw .otherClass }
        let type = record.type
        guard !type.isMeta, type != .any, type.rawValue != 0 else { throw .notOfAZone }
        guard type != .cname || record.aliasTarget != nil else { throw .notOfAZone }
        let parent = record.owner.wildcardParent
        let last = try checkedEnd(of: record, parent)
        let index = Int32(truncatingIfNeeded: records.count)
        records.append(
            Record(
                type: type, timeToLive: record.timeToLive, start: octets.count, count: record.data.count,
                next: Self.end))
        octets += record.data
        if let last {
            records[last].next = index
        } else if let parent {
            wildcards.set(index, for: parent)
        } else {
            names.set(index, for: record.owner)
        }
    }

    /// Checks that a record goes with those that its name has already.
    ///
    /// - Returns: The last of them; nil when there is none.
    private func checkedEnd(of record: ResourceRecord, _ parent: DomainName?) throws(LocalRecordError) -> Int? {
        let name = parent ?? record.owner
        let key = DomainName(name.view, lowercased: true)
        let table = parent == nil ? names : wildcards
        guard let first = table.exactMatch(of: CanonicalName(lowercased: key.bytes)) else { return nil }
        var (index, count) = (Int(first), 1)
        while true {
            let other = records[index]
            if other.type == record.type, data(of: other).hasSameBytes(as: record.data.span.octets) {
                throw .repeated
            }
            // Signatures and proofs may be beside an alias (RFC 4034 §4, RFC 2181 §10.1).
            if record.type == .cname || other.type == .cname,
                !record.type.isDNSSECProof && !other.type.isDNSSECProof
            {
                throw .besidesAlias
            }
            guard other.next != Self.end else { break }
            (index, count) = (Int(other.next), count + 1)
        }
        guard count < Self.maximumRecordCount else { throw .tooMany }
        return index
    }

    /// The data of a record.
    @_lifetime(borrow self)
    func data(of record: Record) -> RawSpan {
        octets.span.octets.extracting(record.start..<record.start + record.count)
    }

    /// True when aliases lead from a name round in a circle, or are more than are followed.
    public func isEndless(from name: DomainName) -> Bool {
        var name = name
        for _ in 0...DNSMessageView.maximumAliasCount {
            let lowercased = DomainName(name.view, lowercased: true)
            guard let target = find(CanonicalName(lowercased: lowercased.bytes))?.alias else { return false }
            name = target
        }
        return true
    }

    /// The records of a name.
    func find(_ name: borrowing CanonicalName) -> Found? {
        if let first = names.exactMatch(of: name) { return Found(names: self, first: Int(first)) }
        guard !wildcards.isEmpty else { return nil }
        let labelCount = name.labelCount
        var first: Int32?
        wildcards.forEachMatch(of: name) { (value, count) in
            if count < labelCount { first = value }
        }
        return first.map { Found(names: self, first: Int($0)) }
    }
}

extension ResourceRecord {
    /// The name that a CNAME leads to.
    fileprivate var aliasTarget: DomainName? {
        guard let view = try? DomainNameView(checking: data.span.octets, at: 0), view.length == data.count else {
            return nil
        }
        return DomainName(view)
    }
}

extension DomainName {
    /// What is behind a first label of `*`; nil when there is no such label.
    fileprivate var wildcardParent: DomainName? {
        guard bytes.byteCount > 2, bytes.uint8(at: 0) == 1, bytes.uint8(at: 1) == UInt8(ascii: "*"),
            let view = try? DomainNameView(checking: bytes.extracting(2...), at: 0)
        else { return nil }
        return DomainName(view)
    }
}
