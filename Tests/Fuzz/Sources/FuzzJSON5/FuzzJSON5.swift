import FuzzSupport
import JSON5

/// The input is a text. What is read of it, written plainly, must read as the same.
@c(LLVMFuzzerTestOneInput)
public func fuzzJSON5(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let copy = [UInt8](copying: bytes)
        // A line for each byte at the most, and one more.
        let limit = JSON5Position(line: copy.count + 1, column: copy.count + 1)
        do throws(JSON5Error) {
            let value = try copy.read { bytes throws(JSON5Error) in try JSON5Value(reading: bytes) }
            require(isWithin(value, limit), "every value has a place in the text")
            let text = written(value)
            let again = try Array(text.utf8).read { bytes throws(JSON5Error) in try JSON5Value(reading: bytes) }
            require(written(again) == text, "what is written reads as the same")
        } catch {
            require(isWithin(error.position, limit), "every error has a place in the text")
            require(!"\(error.problem)".contains("\n"), "an error is one line")
        }
    }
}

private func isWithin(_ position: JSON5Position, _ limit: JSON5Position) -> Bool {
    (1...limit.line).contains(position.line) && (1...limit.column).contains(position.column)
}

private func isWithin(_ value: JSON5Value, _ limit: JSON5Position) -> Bool {
    guard isWithin(value.position, limit) else { return false }
    return switch value.content {
    case .array(let elements): elements.allSatisfy { isWithin($0, limit) }
    case .object(let members): members.allSatisfy { isWithin($0.position, limit) && isWithin($0.value, limit) }
    default: true
    }
}

private func written(_ value: JSON5Value) -> String {
    switch value.content {
    case .null: "null"
    case .boolean(let value): value ? "true" : "false"
    case .integer(let number): String(number)
    case .real(let number):
        number.isNaN ? "NaN" : number.isInfinite ? (number < 0 ? "-Infinity" : "Infinity") : "\(number)"
    case .string(let string): written(string)
    case .array(let elements): "[" + elements.map(written).joined(separator: ",") + "]"
    case .object(let members):
        "{" + members.map { "\(written($0.name)):\(written($0.value))" }.joined(separator: ",") + "}"
    }
}

private func written(_ string: String) -> String {
    var text = "\""
    for unit in string.utf16 {
        let digits = String(unit, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
    return text + "\""
}
