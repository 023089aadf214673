import ByteAccess
public import IPPacket

/// Writes a message into a caller's buffer: a header, a question, records, and an OPT record at the end.
///
/// The buffer is given to each call and has to be the same each time. A call that throws leaves the message as it was before. Names
/// are compressed against those that were written before, octet by octet, so that the case of letters is kept.
public struct MessageWriter: Sendable {
    /// The header, whose counts are kept up to date; ``finish(into:)`` writes it.
    public var header: DNSHeader
    /// The length of the message so far, in bytes.
    public private(set) var count = DNSHeader.byteCount
    /// The most bytes that the message may have.
    public let limit: Int

    /// Where suffixes of names are that later names may point to.
    private var suffixes = InlineArray<48, UInt16>(repeating: 0)
    /// How long they are, so that only those that can be the same are compared: messages may be made to have many that are nearly so.
    private var suffixLengths = InlineArray<48, UInt8>(repeating: 0)
    private var suffixCount = 0

    /// An empty message that may grow to `limit` bytes and to the size of its buffer.
    public init(id: UInt16, flags: DNSFlags, limit: Int = DNSMessageView.maximumByteCount) {
        header = DNSHeader(id: id, flags: flags, questionCount: 0)
        self.limit = min(limit, DNSMessageView.maximumByteCount)
    }

    /// Writes the question, letters as they are. It goes in front of all records.
    public mutating func append(
        question name: borrowing DomainNameView, type: RecordType, recordClass: RecordClass = .internet,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        precondition(count == DNSHeader.byteCount, "a question goes in front of all records, and there is only one")
        var position = count
        do {
            try write(name.bytes, name.walk(from: 0), compressed: true, into: &output, at: &position)
            try reserve(4, at: position, in: output)
        } catch {
            suffixCount = 0
            throw error
        }
        output.storeBigEndian(type.rawValue, at: position)
        output.storeBigEndian(recordClass.rawValue, at: position + 2)
        header.questionCount = 1
        count = position + 4
    }

    /// Writes a record with data that holds no names, or none that are compressed, as local records have it.
    public mutating func append(
        owner: borrowing DomainNameView, type: RecordType, recordClass: RecordClass = .internet, timeToLive: UInt32,
        data: RawSpan, section: MessageSection = .answer, into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        guard data.byteCount <= UInt16.max else { throw .outputTooSmall }
        try appendRecord(
            owner.bytes, owner.walk(from: 0), type, recordClass, timeToLive, section, into: &output
        ) { (writer, output, position) throws(DNSMessageError) in
            try writer.reserve(data.byteCount, at: position, in: output)
            output.copy(data, to: position)
            position += data.byteCount
        }
    }

    /// Writes an A or AAAA record.
    public mutating func append(
        owner: borrowing DomainNameView, address: IPAddress, timeToLive: UInt32, section: MessageSection = .answer,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        try appendRecord(
            owner.bytes, owner.walk(from: 0), address.version == .v4 ? .a : .aaaa, .internet, timeToLive, section,
            into: &output
        ) { (writer, output, position) throws(DNSMessageError) in
            try writer.reserve(address.bitWidth / 8, at: position, in: output)
            output.store(address, at: position)
            position += address.bitWidth / 8
        }
    }

    /// Writes a record whose data is one name: CNAME, PTR, NS or DNAME.
    public mutating func append(
        owner: borrowing DomainNameView, type: RecordType, target: borrowing DomainNameView, timeToLive: UInt32,
        section: MessageSection = .answer, into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        precondition(type == .cname || type == .ptr || type == .ns || type == .dname, "data that is not one name")
        let (bytes, walk) = (target.bytes, target.walk(from: 0))
        try appendRecord(
            owner.bytes, owner.walk(from: 0), type, .internet, timeToLive, section, into: &output
        ) { (writer, output, position) throws(DNSMessageError) in
            try writer.write(bytes, walk, compressed: type != .dname, into: &output, at: &position)
        }
    }

    /// Writes a copy of a record of another message. Its names are compressed anew where its type allows that.
    ///
    /// - Parameters:
    ///   - timeToLive: Another TTL in seconds; nil for the record's own.
    ///   - edit: What is left out of the parameters of SVCB and HTTPS; not for those that it makes unusable.
    public mutating func append(
        _ record: borrowing RecordView, timeToLive: UInt32? = nil,
        applying edit: ServiceBindingEdit = ServiceBindingEdit(), into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        let (bytes, layout) = (record.bytes, record.layout)
        let raw = timeToLive ?? bytes.bigEndianUInt32(at: layout.timeToLiveOffset)
        try appendRecord(
            bytes, LabelWalk(at: layout.offset), layout.type, layout.recordClass, raw, layout.section, into: &output
        ) { (writer, output, position) throws(DNSMessageError) in
            try writer.copyData(of: layout, in: bytes, applying: edit, into: &output, at: &position)
        }
    }

    /// Writes the OPT record. It goes behind all other records, so that a later hand can take it off again.
    public mutating func append(
        _ edns: borrowing EDNSFields, responseCode: ResponseCode, into output: inout MutableRawSpan
    ) throws(DNSMessageError) {
        guard let end = edns.write(into: &output, at: count, limit: limit, responseCode: responseCode) else {
            throw .outputTooSmall
        }
        header.flags.responseCode = responseCode
        header.additionalCount += 1
        count = end
    }

    /// Writes the header, with which the message is done.
    ///
    /// - Returns: The length of the message in bytes.
    @discardableResult
    public func finish(into output: inout MutableRawSpan) throws(DNSMessageError) -> Int {
        guard output.byteCount >= DNSHeader.byteCount else { throw .outputTooSmall }
        header.store(into: &output)
        return count
    }
}

extension MessageWriter {
    /// Writes owner, fixed fields, and the data by `writeData`; then the length of the data.
    mutating func appendRecord(
        _ ownerBytes: RawSpan, _ owner: LabelWalk, _ type: RecordType, _ recordClass: RecordClass, _ timeToLive: UInt32,
        _ section: MessageSection, into output: inout MutableRawSpan,
        _ writeData: (inout MessageWriter, inout MutableRawSpan, inout Int) throws(DNSMessageError) -> Void
    ) throws(DNSMessageError) {
        let suffixesBefore = suffixCount
        do {
            var position = count
            try write(ownerBytes, owner, compressed: true, into: &output, at: &position)
            try reserve(10, at: position, in: output)
            output.storeBigEndian(type.rawValue, at: position)
            output.storeBigEndian(recordClass.rawValue, at: position + 2)
            output.storeBigEndian(timeToLive, at: position + 4)
            let lengthOffset = position + 8
            position += 10
            try writeData(&self, &output, &position)
            output.storeBigEndian(UInt16(truncatingIfNeeded: position - lengthOffset - 2), at: lengthOffset)
            header[section] += 1
            count = position
        } catch {
            suffixCount = suffixesBefore
            throw error
        }
    }

    /// Throws when `length` bytes more do not fit.
    func reserve(_ length: Int, at position: Int, in output: borrowing MutableRawSpan) throws(DNSMessageError) {
        guard length <= min(limit, output.byteCount) - position else { throw .outputTooSmall }
    }

    /// Writes a name, ending it in a pointer as soon as what is left of it is there already.
    mutating func write(
        _ bytes: RawSpan, _ start: LabelWalk, compressed: Bool, into output: inout MutableRawSpan,
        at position: inout Int
    ) throws(DNSMessageError) {
        var walk = start
        var length = Self.length(of: start, in: bytes)
        while true {
            let rest = walk
            guard let label = walk.next(in: bytes) else { break }
            if compressed, let suffix = suffix(equalTo: rest, length, of: bytes, in: output.bytes) {
                try reserve(2, at: position, in: output)
                output.storeBigEndian(0xC000 | suffix, at: position)
                position += 2
                return
            }
            try reserve(1 + label.count, at: position, in: output)
            // Beyond 16,383 a pointer does not reach (RFC 1035 §4.1.4).
            if position < 0x4000, suffixCount < suffixes.count {
                suffixes[suffixCount] = UInt16(truncatingIfNeeded: position)
                suffixLengths[suffixCount] = length
                suffixCount += 1
            }
            output.store(UInt8(truncatingIfNeeded: label.count), at: position)
            output.copy(bytes.extracting(label), to: position + 1)
            position += 1 + label.count
            length -= UInt8(truncatingIfNeeded: 1 + label.count)
        }
        try reserve(1, at: position, in: output)
        output.store(0, at: position)
        position += 1
    }

    /// The length of a checked name from here on without compression: 255 at most.
    private static func length(of start: LabelWalk, in bytes: RawSpan) -> UInt8 {
        var (walk, length) = (start, 1)
        while let label = walk.next(in: bytes) { length += 1 + label.count }
        return UInt8(truncatingIfNeeded: length)
    }

    /// Where the same labels are already, down to the root.
    private func suffix(
        equalTo rest: LabelWalk, _ length: UInt8, of bytes: RawSpan, in output: RawSpan
    ) -> UInt16? {
        // By way of their spans: to read an element itself copies all of them.
        let suffixes = suffixes.span
        let suffixLengths = suffixLengths.span
        for index in 0..<suffixCount {
            // What belongs to the record that is being written may have no root yet, and a walk must not leave what is there.
            guard Int(suffixes[index]) < count else { return nil }
            guard suffixLengths[index] == length else { continue }
            let candidate = LabelWalk(at: Int(suffixes[index]))
            if DomainNameView.haveSameLabels(bytes, rest, output, candidate, foldingCase: false) {
                return suffixes[index]
            }
        }
        return nil
    }
}
