import ByteAccess

extension MessageWriter {
    /// Writes the data of a record of another message, with its names.
    mutating func copyData(
        of layout: RecordLayout, in bytes: RawSpan, applying edit: ServiceBindingEdit,
        into output: inout MutableRawSpan, at position: inout Int
    ) throws(DNSMessageError) {
        let shape = RecordDataShape(of: layout.type)
        var offset = layout.data.lowerBound
        var namesStart = offset + Int(shape.fixed)
        for _ in 0..<shape.strings {
            try RecordDataShape.passString(in: bytes, at: &namesStart, end: layout.data.upperBound)
        }
        guard namesStart <= layout.data.upperBound else { throw .invalidRecordDataLength }
        try copy(offset..<namesStart, of: bytes, into: &output, at: &position)
        offset = namesStart
        for _ in 0..<shape.names {
            try write(bytes, LabelWalk(at: offset), compressed: shape.mayCompress, into: &output, at: &position)
            offset = try NameLayout.end(ofNameIn: bytes, at: offset)
        }
        // Of priority 0 it is an alias, which no edit changes.
        if case .serviceParameters = shape.tail, !edit.isEmpty, bytes.bigEndianUInt16(at: layout.data.lowerBound) != 0 {
            try copyServiceParameters(
                bytes.extracting(offset..<layout.data.upperBound), applying: edit, into: &output, at: &position)
        } else {
            try copy(offset..<layout.data.upperBound, of: bytes, into: &output, at: &position)
        }
    }

    private func copy(
        _ range: Range<Int>, of bytes: RawSpan, into output: inout MutableRawSpan, at position: inout Int
    ) throws(DNSMessageError) {
        try reserve(range.count, at: position, in: output)
        output.copy(bytes.extracting(range), to: position)
        position += range.count
    }

    /// Writes what an edit leaves of parameters, their keys still ascending. `mandatory` loses the keys that go, and goes itself when
    /// nothing is left of it.
    private func copyServiceParameters(
        _ parameters: RawSpan, applying edit: ServiceBindingEdit, into output: inout MutableRawSpan,
        at position: inout Int
    ) throws(DNSMessageError) {
        let omitted = edit.allOmittedKeys(of: parameters)
        var cursor = ServiceParameterCursor(parameters)
        while let parameter = cursor.next() {
            if omitted.contains(parameter.key) { continue }
            // What is written is never longer than what was there.
            try reserve(4 + parameter.value.byteCount, at: position, in: output)
            var end = position + 4
            switch parameter.key {
            case .mandatory:
                for offset in stride(from: 0, to: parameter.value.byteCount, by: 2) {
                    let key = ServiceParameterKey(rawValue: parameter.value.bigEndianUInt16(at: offset))
                    if omitted.contains(key) { continue }
                    output.storeBigEndian(key.rawValue, at: end)
                    end += 2
                }
                if end == position + 4 { continue }
            case .alpn:
                var protocols = parameter.applicationProtocols
                while let identifier = protocols.next() {
                    guard edit.keeps(identifier) else { continue }
                    output.store(UInt8(truncatingIfNeeded: identifier.byteCount), at: end)
                    output.copy(identifier, to: end + 1)
                    end += 1 + identifier.byteCount
                }
            default:
                output.copy(parameter.value, to: end)
                end += parameter.value.byteCount
            }
            output.storeBigEndian(parameter.key.rawValue, at: position)
            output.storeBigEndian(UInt16(truncatingIfNeeded: end - position - 4), at: position + 2)
            position = end
        }
    }

    /// Writes the question and those records of a checked message that `isKept` picks. OPT and TSIG are never copied: they are for one
    /// hop only (RFC 6891 §6.2.6, RFC 8945 §5.5).
    public mutating func append(
        contentsOf message: borrowing DNSMessageView, into output: inout MutableRawSpan,
        where isKept: (borrowing RecordView) -> Bool
    ) throws(DNSMessageError) {
        if let question = message.question {
            try append(
                question: question.name, type: question.type, recordClass: question.recordClass, into: &output)
        }
        var records = message.records
        while let record = records.next() {
            if record.type == .opt || record.type == .tsig || !isKept(record) { continue }
            try append(record, into: &output)
        }
    }
}
