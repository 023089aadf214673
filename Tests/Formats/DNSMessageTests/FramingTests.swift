import ByteAccess
import DNSMessage
import TestSupport
import Testing

@Suite struct FramingTests {
    /// Reads a stream that comes in pieces, with a buffer that grows when it is asked to.
    private func messages(_ pieces: [[UInt8]], limit: Int = 65_535, buffer size: Int = 0) throws -> [[UInt8]] {
        var reader = FramedMessageReader(limit: limit)
        var buffer = [UInt8](repeating: 0, count: size)
        var messages: [[UInt8]] = []
        for piece in pieces {
            var offset = 0
            reading: while true {
                let event = try buffer.edit { buffer throws(FramingError) in
                    try reader.next(piece.span.octets, at: &offset, buffer: &buffer)
                }
                switch event {
                case .messageInInput(let range): messages.append(Array(piece[range]))
                case .messageInBuffer(let count): messages.append(Array(buffer[..<count]))
                case .needsBuffer(let count):
                    #expect(count > buffer.count)
                    buffer += [UInt8](repeating: 0, count: count - buffer.count)
                case .needsInput: break reading
                }
            }
            #expect(offset == piece.count)
        }
        #expect(!reader.isWithinMessage)
        return messages
    }

    private func framed(_ message: [UInt8]) -> [UInt8] {
        [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message
    }

    @Test func `messages come whole however the stream is cut`() throws {
        var random = SeededGenerator(seed: 7766)
        for _ in 0..<300 {
            let sent = (0..<5).map { _ in random.bytes(Int.random(in: 12...90, using: &random)) }
            let stream = sent.flatMap(framed)
            var pieces: [[UInt8]] = []
            var rest = stream[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...40, using: &random)
                pieces.append(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            #expect(try messages(pieces) == sent)
            #expect(try messages([stream]) == sent)
            #expect(try messages(stream.map { [$0] }, buffer: 90) == sent)
        }
    }

    @Test func `a message that is whole in its piece is not copied`() throws {
        let piece = framed([UInt8](repeating: 1, count: 12)) + framed([UInt8](repeating: 2, count: 13))
        var reader = FramedMessageReader()
        var offset = 0
        var nothing: [UInt8] = []
        var events: [FramedMessageReader.Event] = []
        for _ in 0..<3 {
            events.append(
                try nothing.edit { buffer throws(FramingError) in
                    try reader.next(piece.span.octets, at: &offset, buffer: &buffer)
                })
        }
        #expect(events == [.messageInInput(2..<14), .messageInInput(16..<29), .needsInput])
    }

    @Test(arguments: 0..<12)
    func `a length below that of a header ends the stream`(_ length: Int) {
        #expect(throws: FramingError.messageTooShort(length: length)) {
            try messages([[0, UInt8(length)] + [UInt8](repeating: 0, count: length)])
        }
        #expect(throws: FramingError.messageTooShort(length: length)) { try messages([[0], [UInt8(length)]]) }
    }

    @Test func `the longest message is taken, and one above the limit is refused before its bytes come`() throws {
        let longest = [UInt8](repeating: 0x5A, count: 65_535)
        #expect(try messages([framed(longest)]) == [longest])
        #expect(try messages([Array(framed(longest)[..<7]), Array(framed(longest)[7...])]) == [longest])
        #expect(throws: FramingError.messageTooLong(length: 513)) { try messages([[2, 1]], limit: 512) }
        #expect(try messages([framed([UInt8](repeating: 1, count: 512))], limit: 512).count == 1)
    }

    @Test func `a message that has begun is known`() throws {
        var reader = FramedMessageReader()
        var buffer = [UInt8](repeating: 0, count: 64)
        for (piece, isWithin) in [([0], true), ([12], true), ([1, 2, 3], true)] as [([UInt8], Bool)] {
            var offset = 0
            _ = try buffer.edit { buffer throws(FramingError) in
                try reader.next(piece.span.octets, at: &offset, buffer: &buffer)
            }
            #expect(reader.isWithinMessage == isWithin)
        }
        #expect(reader.bufferedCount == 3)
    }

    @Test(arguments: [1, 2, 3, 7, 100])
    func `a message is written with its length in steps of any size`(_ step: Int) {
        let message = (0..<45).map { UInt8($0) }
        var writer = FramedMessageWriter(messageLength: message.count)
        var stream: [UInt8] = []
        var steps = 0
        while !writer.isFinished {
            stream += written(size: step) { writer.write(message.span.octets, into: &$0) }
            steps += 1
        }
        #expect(stream == framed(message))
        #expect(steps == (47 + step - 1) / step)
    }
}
