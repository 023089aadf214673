internal import CNGHTTP2

/// The header fields of requests to one resource, in memory that nghttp2 refers to and does not copy: of a request, only one value
/// is its own. The session that was given them goes away before they do.
@safe
struct RequestFields: ~Copyable {
    private static let lengthDigits = 5

    private let fields: UnsafeMutablePointer<nghttp2_nv>
    private let count: Int
    private let text: UnsafeMutablePointer<UInt8>
    /// The field that differs: the length of the body, or the path with the query in it.
    private let variable: Int

    /// The fields for a resource, by its method.
    init(_ target: DoHTarget) {
        let isPost = target.method == .post
        var all = [
            (":method", isPost ? "POST" : "GET"), (":scheme", "https"), (":authority", target.authority),
            (":path", target.path), ("accept", "application/dns-message"),
        ]
        variable = isPost ? 6 : 3
        if isPost {
            all.append(("content-type", "application/dns-message"))
            all.append(("content-length", String(repeating: "0", count: Self.lengthDigits)))
        }
        let bytes = all.flatMap { Array($0.utf8) + Array($1.utf8) }
        count = all.count
        unsafe text = .allocate(capacity: bytes.count)
        unsafe text.initialize(from: bytes, count: bytes.count)
        unsafe fields = .allocate(capacity: count)
        var offset = 0
        for (index, (name, value)) in all.enumerated() {
            var flags = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue
            if index != variable {
                flags |= NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue
            } else if !isPost {
                // Each path is another one: in the table of the header's compression it would only push out what comes again.
                flags |= NGHTTP2_NV_FLAG_NO_INDEX.rawValue
            }
            let (length, valueLength) = (name.utf8.count, value.utf8.count)
            // The field is within its allocation, and its text within the other: both were made as long.
            unsafe (fields + index).initialize(
                to: nghttp2_nv(
                    name: text + offset, value: text + offset + length, namelen: length, valuelen: valueLength,
                    flags: UInt8(flags)))
            offset += length + valueLength
        }
    }

    deinit {
        // Both are this value's own, and trivial.
        unsafe fields.deallocate()
        unsafe text.deallocate()
    }

    /// Lends the fields of a request that has a body of this length, for the length of the call.
    mutating func withFields(bodyLength: Int, _ body: (UnsafePointer<nghttp2_nv>, Int) -> Int32) -> Int32 {
        let value = unsafe fields[variable].value
        var (rest, digits) = (bodyLength, 1)
        while rest >= 10 { (rest, digits) = (rest / 10, digits + 1) }
        precondition(digits <= Self.lengthDigits, "a body that is longer than any message")
        rest = bodyLength
        for index in (0..<digits).reversed() {
            // There is room for as many digits.
            unsafe value?[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
        // The index is that of a field.
        unsafe fields[variable].valuelen = digits
        return unsafe body(fields, count)
    }

    /// Lends the fields of a request that has a path of its own, for the length of the call.
    mutating func withFields(path: String, _ body: (UnsafePointer<nghttp2_nv>, Int) -> Int32) -> Int32 {
        var path = Array(path.utf8)
        // The path lives for the call, in which nghttp2 copies it; the index is that of a field.
        return unsafe path.withUnsafeMutableBufferPointer { path in
            unsafe (fields[variable].value, fields[variable].valuelen) = (path.baseAddress, path.count)
            defer { unsafe (fields[variable].value, fields[variable].valuelen) = (nil, 0) }
            return unsafe body(fields, count)
        }
    }
}
