import FuzzSupport
import OpenMetrics

/// The first byte says how the rest is cut into pieces; the rest is a request by HTTP. The same bytes are a label as well.
@c(LLVMFuzzerTestOneInput)
public func fuzzOpenMetrics(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let input = [UInt8](copying: bytes)
        guard let step = input.first else { return }
        let request = Array(input[1...])
        let whole = read(request, length: max(1, request.count))
        for length in [Int(step) % 40 + 1, 1] {
            require(read(request, length: length) == whole, "the same request however it is cut")
        }
        if case .request(let request) = whole {
            require(!request.method.isEmpty && !request.path.isEmpty, "a request has a method and a path")
            let isPlain = (request.method + request.path).utf8.allSatisfy { 0x21...0x7E ~= $0 }
            require(isPlain, "neither a blank nor a control character is in a request")
        }
        checkLabel(String(decoding: request, as: UTF8.self))
    }
}

private func read(_ request: [UInt8], length: Int) -> HTTPRequestReader.Progress {
    var reader = HTTPRequestReader()
    var progress = HTTPRequestReader.Progress.incomplete
    var start = 0
    while start < request.count {
        let piece = Array(request[start..<min(start + length, request.count)])
        progress = piece.read { reader.take($0) }
        start += piece.count
    }
    return progress
}

/// A label's value comes back out of the line that it is written in, and does not get out of it by itself.
private func checkLabel(_ value: String) {
    var text = OpenMetricsText()
    text.begin("a", .gauge, help: value)
    text.addGauge(1, [("b", value)])
    let lines = text.text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    require(lines.count == 5 && lines[4].isEmpty, "each line is one")
    var found: [UInt8] = []
    var rest = lines[2].dropFirst(#"a{b=""#.utf8.count)[...]
    while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
        guard byte == UInt8(ascii: "\\") else {
            found.append(byte)
            continue
        }
        let escaped = rest.popFirst()
        found.append(escaped == UInt8(ascii: "n") ? UInt8(ascii: "\n") : escaped ?? 0)
    }
    require(found == Array(value.utf8), "the value comes back")
    require(rest.elementsEqual("} 1".utf8), "nothing else is in the line")
}
