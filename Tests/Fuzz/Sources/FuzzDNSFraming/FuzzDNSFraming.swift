import DNSMessage
import FuzzSupport

/// The first byte says how the rest is cut into pieces; the rest is a stream of messages with their lengths.
@c(LLVMFuzzerTestOneInput)
public func fuzzDNSFraming(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let input = [UInt8](copying: bytes)
        guard let step = input.first else { return }
        let stream = Array(input[1...])
        let expected = defined(stream)
        for length in [Int(step) % 40 + 1, 1, max(1, stream.count)] {
            let read = pieces(of: stream, length: length)
            require(read.messages == expected.messages, "the same messages however the stream is cut")
            require(read.isBroken == expected.isBroken, "an error is one however the stream is cut")
        }
        var written: [UInt8] = []
        for message in expected.messages { write(message, step: Int(step) % 7 + 1, to: &written) }
        require(written.elementsEqual(stream.prefix(written.count)), "messages are written as they came")
    }
}

/// What the stream holds as RFC 1035 §4.2.2 says it.
private func defined(_ stream: [UInt8]) -> (messages: [[UInt8]], isBroken: Bool) {
    var (messages, rest) = ([[UInt8]](), stream[...])
    while rest.count >= 2 {
        let length = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
        if length < 12 || length > 4096 { return (messages, true) }
        guard rest.count >= 2 + length else { break }
        messages.append(Array(rest.dropFirst(2).prefix(length)))
        rest = rest.dropFirst(2 + length)
    }
    return (messages, false)
}

private func pieces(of stream: [UInt8], length: Int) -> (messages: [[UInt8]], isBroken: Bool) {
    var reader = FramedMessageReader(limit: 4096)
    var buffer: [UInt8] = []
    var messages: [[UInt8]] = []
    var start = 0
    while start < stream.count {
        let piece = Array(stream[start..<min(start + length, stream.count)])
        start += piece.count
        var offset = 0
        reading: while true {
            let event = buffer.edit { buffer in
                piece.read { try? reader.next($0, at: &offset, buffer: &buffer) }
            }
            switch event {
            case .messageInInput(let range): messages.append(Array(piece[range]))
            case .messageInBuffer(let count): messages.append(Array(buffer[..<count]))
            case .needsBuffer(let count):
                require(count > buffer.count, "more is asked for than there is")
                buffer += [UInt8](repeating: 0, count: count - buffer.count)
            case .needsInput:
                require(offset == piece.count, "a piece is used up")
                break reading
            case nil: return (messages, true)
            }
        }
    }
    return (messages, false)
}

private func write(_ message: [UInt8], step: Int, to stream: inout [UInt8]) {
    var writer = FramedMessageWriter(messageLength: message.count)
    var output = [UInt8](repeating: 0, count: step)
    while !writer.isFinished {
        let count = output.edit { output in message.read { writer.write($0, into: &output) } }
        require(count > 0, "each step writes something")
        stream += output[..<count]
    }
}
