internal import ByteAccess
internal import JSON5

/// Values as lines of JSON, in the shape that Foundation's coders give them with their usual settings: what is kept in files and
/// what goes between processes. Foundation itself would cost a process 2 MiB of memory that it needs for nothing else.
///
/// Fractions, and whole numbers beyond `Int`, are none of a line's values.
enum JSONLine {
    /// The line of a value, without its end; there is no end of a line within.
    static func encode(_ value: some Encodable) throws(JSONLineError) -> [UInt8] {
        let slot = JSONSlot()
        do {
            try slot.encode(value, at: [])
        } catch let error as JSONLineError {
            throw error
        } catch { throw .notEncodable }
        let line = Array(slot.text.text.utf8)
        guard line.count <= JSON5Value.maximumByteCount else { throw .tooLong }
        return line
    }

    /// The value that a line stands for.
    static func decode<Value: Decodable>(
        _ type: Value.Type, from line: borrowing [UInt8]
    ) throws(JSONLineError) -> Value {
        let value: JSON5Value
        do throws(JSON5Error) { value = try JSON5Value(reading: line.span.octets) } catch { throw .notJSON(error) }
        do {
            return try JSONValueDecoder(value: value, codingPath: []).read(Value.self)
        } catch let error as DecodingError {
            throw .notDecodable(at: error.path)
        } catch { throw .notDecodable(at: "") }
    }
}

/// Why a value has no line, or a line no value.
enum JSONLineError: Error, Hashable {
    /// The line is not JSON.
    case notJSON(JSON5Error)
    /// The line is JSON, but what is at this place, names and numbers with points between, is not what it should be.
    case notDecodable(at: String)
    /// The value has something in it that lines have no form for.
    case notEncodable
    /// The line would be longer than one that is read: ``JSON5Value/maximumByteCount``.
    case tooLong
}

/// The place of an element of an array, for errors.
struct JSONIndex: CodingKey {
    let intValue: Int?
    var stringValue: String { intValue.map { "\($0)" } ?? "" }

    init(_ index: Int) { intValue = index }
    init?(intValue: Int) { self.init(intValue) }
    init?(stringValue: String) { nil }
}

extension DecodingError {
    /// Where it is.
    fileprivate var path: String {
        let (keys, missing): ([any CodingKey], (any CodingKey)?) =
            switch self {
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
                (context.codingPath, nil)
            case .keyNotFound(let key, let context): (context.codingPath, key)
            @unknown default: ([], nil)
            }
        return (keys + [missing].compactMap(\.self)).map(\.stringValue).joined(separator: ".")
    }
}
