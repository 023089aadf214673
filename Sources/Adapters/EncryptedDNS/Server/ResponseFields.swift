internal import CNGHTTP2

/// The header fields of a response, kept together until nghttp2 has copied them.
struct ResponseFields {
    private var text: [UInt8] = []
    private var fields: [(name: Range<Int>, value: Range<Int>)] = []

    /// Adds a field with a name in lower case.
    mutating func append(_ name: String, _ value: String) {
        let start = text.count
        text.append(contentsOf: name.utf8)
        let middle = text.count
        text.append(contentsOf: value.utf8)
        fields.append((start..<middle, middle..<text.count))
    }

    /// Lends the fields for the length of the call.
    mutating func withFields<Result>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result {
        let fields = fields
        // The ranges are within the text, which is not empty; nghttp2 does not write into it.
        return unsafe text.withUnsafeMutableBufferPointer { text in
            let list = unsafe fields.map { field in
                unsafe nghttp2_nv(
                    name: text.baseAddress.map { unsafe $0 + field.name.lowerBound },
                    value: text.baseAddress.map { unsafe $0 + field.value.lowerBound },
                    namelen: field.name.count, valuelen: field.value.count, flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
            }
            return unsafe list.withUnsafeBufferPointer { unsafe body($0.baseAddress, $0.count) }
        }
    }
}
