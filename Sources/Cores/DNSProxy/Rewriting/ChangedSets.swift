internal import ByteAccess
internal import DNSMessage

/// The RRsets of an answer that are not what a server signed any more.
///
/// The first few are known by name. Nobody has more but to make work: then the signatures of all sets go.
struct ChangedSets {
    private var offsets = InlineArray<8, Int>(repeating: 0)
    private var types = InlineArray<8, RecordType>(repeating: RecordType(rawValue: 0))
    private var count = 0
    private var areAllChanged = false

    /// True when none is changed.
    var isEmpty: Bool { count == 0 }

    /// Notes the set of a record.
    mutating func add(_ record: borrowing RecordView, in message: RawSpan) {
        guard !contain(record.owner, record.type, in: message) else { return }
        guard count < offsets.count else {
            areAllChanged = true
            return
        }
        offsets[count] = record.layout.offset
        types[count] = record.type
        count += 1
    }

    /// True when the set of an owner and type is changed.
    func contain(_ owner: borrowing DomainNameView, _ type: RecordType, in message: RawSpan) -> Bool {
        if areAllChanged { return true }
        for index in 0..<count where types[index] == type {
            guard let other = try? DomainNameView(checking: message, at: offsets[index]) else { continue }
            if other.isEqual(to: owner) { return true }
        }
        return false
    }
}
