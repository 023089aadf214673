import Glibc
import Provider
import Testing

@testable import LinuxHost

@Suite struct StreamFramingTests {
    @Test func c1AnySegmentationIsTheSame() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            let queries = (0..<4).map { ClientWire.framed(ClientWire.query(id: UInt16($0), "localhost")) }
            let stream = Array(queries.joined())
            for pieceLength in [1, 2, 3, 17, 40, stream.count] {
                var client = try ClientSocket(connectedTo: ClientRig.address)
                var answered: [UInt16] = []
                var offset = 0
                while offset < stream.count {
                    try client.write(Array(stream[offset..<min(offset + pieceLength, stream.count)]))
                    offset += pieceLength
                    // Each piece is read by itself.
                    try rig.turn(until: HostClock.now() + .milliseconds(1))
                }
                try rig.serve(until: "four answers in pieces of \(pieceLength)") { _ in
                    while case .message(let answer) = client.next() { answered.append(ClientWire.id(answer)) }
                    return answered.count == 4
                }
                #expect(answered == [0, 1, 2, 3])
            }
        }
    }

    @Test func c2AConnectionStaysOpenAfterEveryKindOfAnswer() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig(rules: ["||blocked.example^"])
            var client = try ClientSocket(connectedTo: ClientRig.address)
            // Local, blocked, refused (a zone transfer), out of order (a question without a type), from a server, kept.
            let kinds: [(query: [UInt8], code: UInt8)] = [
                (ClientWire.query(id: 1, "localhost"), 0), (ClientWire.query(id: 2, "blocked.example"), 0),
                (ClientWire.query(id: 3, "example.com", type: 252), 5),
                (Array(ClientWire.query(id: 4, "example.com").dropLast(4)), 1),
                (ClientWire.query(id: 5, "example.com"), 0), (ClientWire.query(id: 6, "example.com"), 0),
            ]
            for (query, code) in kinds {
                try client.write(ClientWire.framed(query))
                let answer = try rig.nextMessage(of: &client, answersServers: true)
                #expect(ClientWire.id(answer) == ClientWire.id(query))
                #expect(ClientWire.code(answer) == code)
            }
            #expect(rig.side.counts.streams == StreamCounts(connected: 1, accepted: 1))
        }
    }

    @Test func c3PipelinedQueriesAreAnsweredInTheOrderOfTheAnswers() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var client = try ClientSocket(connectedTo: ClientRig.address)
            let names = ["slow.example", "middle.example", "localhost", "fast.example"]
            try client.write(
                names.enumerated().flatMap { ClientWire.framed(ClientWire.query(id: UInt16($0.offset), $0.element)) })
            try rig.serve(until: "three questions") { $0.asked.count == 3 }
            try rig.expectMessage(2, of: &client)
            for (index, id) in [(2, 3), (1, 1), (0, 0)] as [(Int, UInt16)] {
                try rig.answer(index)
                try rig.expectMessage(id, of: &client)
            }
            #expect(rig.waiting == 0)
        }
    }

    @Test func c4LengthAndMessageAreOneSegment() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var client = try ClientSocket(connectedTo: ClientRig.address)
            for id in 0..<3 as Range<UInt16> {
                // Answered by a server, then from what is kept.
                try client.write(ClientWire.framed(ClientWire.query(id: id, "example.com")))
                _ = try rig.nextMessage(of: &client, answersServers: true)
                #expect(try client.receivedSegments() == UInt32(id) + 1)
            }
            // Those of one piece leave together.
            try client.write((0..<20).flatMap { ClientWire.framed(ClientWire.query(id: $0, "localhost")) })
            for _ in 0..<20 { _ = try rig.nextMessage(of: &client) }
            #expect(try client.receivedSegments() == 4)
        }
    }

    @Test(arguments: [0, 1, 11])
    func c5WhatIsTooShortToBeAMessageEndsTheConnectionAfterItsAnswers(length: Int) throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var client = try ClientSocket(connectedTo: ClientRig.address)
            try client.write(
                ClientWire.framed(ClientWire.query(id: 1, "example.com"))
                    + ClientWire.framed([UInt8](repeating: 0, count: length))
                    + ClientWire.framed(ClientWire.query(id: 2, "localhost")))
            try rig.serve(until: "a question") { $0.asked.count == 1 }
            try rig.serveAll()
            #expect(client.next() == .nothing)
            try rig.answerFirst()
            try rig.expectMessage(1, of: &client)
            try rig.expectEnd(of: &client)
            #expect(rig.side.counts.streams == StreamCounts(accepted: 1, malformed: 1))
        }
    }

    @Test func c5TheLongestMessageIsTaken() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var client = try ClientSocket(connectedTo: ClientRig.address)
            // An option (RFC 6891 §6.1.2) that fills the message up to 65,535 bytes.
            let bare = ClientWire.query(id: 0xABCD, "localhost").count + 11
            let rest = 65_535 - bare
            let option: [UInt8] = [
                0, 0, 41, 4, 208, 0, 0, 0, 0, UInt8(rest >> 8), UInt8(rest & 0xFF), 0xFF, 0xFE, UInt8((rest - 4) >> 8),
                UInt8((rest - 4) & 0xFF),
            ]
            let query = ClientWire.query(
                id: 0xABCD, "localhost", additional: option + [UInt8](repeating: 7, count: rest - 4))
            #expect(query.count == 65_535)
            for _ in 0..<2 {
                let stream = ClientWire.framed(query)
                var offset = 0
                try rig.serve(until: "the query to be sent") { _ in
                    offset += try client.write(Array(stream[offset...]))
                    return offset == stream.count
                }
                let answer = try rig.nextMessage(of: &client)
                #expect(ClientWire.id(answer) == 0xABCD)
                #expect(ClientWire.code(answer) == 0)
            }
            // As many zeros are a header that asks nothing.
            try client.write(ClientWire.framed([UInt8](repeating: 0, count: 65_535)))
            let refusal = try rig.nextMessage(of: &client)
            #expect(ClientWire.id(refusal) == 0)
            #expect(ClientWire.code(refusal) == 1)
        }
    }

    @Test func anAnswerOfAnyLengthIsWhole() throws {
        try aloneInNewNetworkNamespace {
            var rig = try ClientRig()
            var client = try ClientSocket(connectedTo: ClientRig.address)
            // 250 strings of 255 bytes in 250 records: 63 KiB.
            let data = (0..<230).map { [255] + [UInt8](repeating: UInt8($0), count: 255) }
            try client.write(ClientWire.framed(ClientWire.query(id: 1, "large.example", type: 16)))
            try rig.serve(until: "a question") { $0.asked.count == 1 }
            try rig.answerFirst(type: 16, data)
            let answer = try rig.nextMessage(of: &client)
            #expect(answer.count == 12 + 19 + 230 * (12 + 256))
            #expect(answer[2] & 0x02 == 0)
            #expect(answer.suffix(255).allSatisfy { $0 == 229 })
        }
    }
}
