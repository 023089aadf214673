internal import ByteAccess
internal import DNSMessage

/// Queries that go out encrypted, in blocks of 128 bytes (RFC 8467 §4.1), so that their length tells little.
enum QueryPadding {
    /// Adds the padding option (RFC 7830 §3) to a query with an OPT record at its end that has none yet. Others stay as they are:
    /// without an OPT record there is nowhere to pad.
    static func pad(_ query: inout [UInt8]) {
        let block = EDNSFields.queryPaddingBlock
        guard query.count % block != 0, let length = dataLength(ofOPTAtEndOf: query) else { return }
        let padding = (block - (query.count + 4) % block) % block
        let dataLength = length + 4 + padding
        guard query.count + 4 + padding <= DNSMessageView.maximumByteCount else { return }
        let lengthOffset = query.count - length - 2
        query[lengthOffset] = UInt8(truncatingIfNeeded: dataLength >> 8)
        query[lengthOffset + 1] = UInt8(truncatingIfNeeded: dataLength)
        query += [0, 12, UInt8(truncatingIfNeeded: padding >> 8), UInt8(truncatingIfNeeded: padding)]
        query += repeatElement(0, count: padding)
    }

    /// The length of the OPT record's data; nil when there is no such record, it is not the last, or has padding.
    private static func dataLength(ofOPTAtEndOf query: [UInt8]) -> Int? {
        guard let view = try? DNSMessageView(checking: query.span.octets), let edns = view.edns,
            edns.layout.endOffset == query.count, edns.value(of: .padding) == nil
        else { return nil }
        return edns.layout.data.count
    }
}
