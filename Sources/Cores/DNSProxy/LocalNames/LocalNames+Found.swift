internal import ByteAccess
internal import DNSMessage

extension LocalNames {
    /// The records of a name that was found.
    struct Found {
        let names: LocalNames
        /// The place of its first record.
        let first: Int

        /// The shortest TTL of all its records, in seconds.
        var timeToLive: UInt32 { timeToLive { _ in true } }

        /// The name that it is an alias of; nil when it is none.
        var alias: DomainName? {
            var index = first
            while index >= 0 {
                let record = names.records[index]
                if record.type == .cname {
                    // It was checked when it was added.
                    let data = names.data(of: record)
                    guard let view = try? DomainNameView(checking: data, at: 0) else { return nil }
                    return DomainName(view)
                }
                index = Int(record.next)
            }
            return nil
        }

        /// Writes the records of a type, or of all types for ANY, and their signatures when those are wanted.
        ///
        /// - Parameter owner: The name, in the letters that the client gets to see.
        /// - Returns: False when there are none.
        func append(
            _ type: RecordType, of owner: borrowing DomainNameView, dnssecOK: Bool, to writer: inout MessageWriter,
            into output: inout MutableRawSpan
        ) throws(DNSMessageError) -> Bool {
            // Records of one set have one TTL (RFC 2181 §5.2).
            let timeToLive = timeToLive { type == .any || $0 == type }
            var isEmpty = true
            var index = first
            while index >= 0 {
                let record = names.records[index]
                if record.type == type || type == .any {
                    isEmpty = false
                    try append(record, owner, timeToLive, &writer, &output)
                }
                index = Int(record.next)
            }
            guard dnssecOK, !isEmpty, type != .any, type != .rrsig else { return !isEmpty }
            index = first
            while index >= 0 {
                let record = names.records[index]
                if record.type == .rrsig, record.count > 2,
                    names.data(of: record).bigEndianUInt16(at: 0) == type.rawValue
                {
                    try append(record, owner, timeToLive, &writer, &output)
                }
                index = Int(record.next)
            }
            return true
        }

        private func append(
            _ record: Record, _ owner: borrowing DomainNameView, _ timeToLive: UInt32, _ writer: inout MessageWriter,
            _ output: inout MutableRawSpan
        ) throws(DNSMessageError) {
            try writer.append(
                owner: owner, type: record.type, timeToLive: timeToLive, data: names.data(of: record), into: &output)
        }

        private func timeToLive(_ isCounted: (RecordType) -> Bool) -> UInt32 {
            var (shortest, index) = (UInt32.max, first)
            while index >= 0 {
                let record = names.records[index]
                if isCounted(record.type) { shortest = min(shortest, record.timeToLive) }
                index = Int(record.next)
            }
            return shortest
        }
    }
}
