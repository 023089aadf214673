import ByteAccess
import DNSMessage
import TestSupport
import Testing

/// What an edit leaves of SVCB and HTTPS records, compared with what RFC 9460 says and with a model that is written here.
@Suite struct ServiceBindingEditTests {
    /// What becomes of a record, and its data when it is copied.
    private func edited(
        _ data: [UInt8], _ edit: ServiceBindingEdit, _ type: RecordType = .https
    ) throws -> (effect: ServiceBindingEdit.Effect, data: [UInt8]) {
        let bytes = try answer([record("c00c", type.rawValue, data)], type: type)
        let view = try DNSMessageView(checking: bytes.span.octets)
        var records = view.records
        guard let service = records.next() else { throw Absent() }
        let copy = try written {
            var writer = MessageWriter(id: 0, flags: .response)
            try writer.append(service, applying: edit, into: &$0)
            return try writer.finish(into: &$0)
        }
        // What is written is in order again.
        let again = try DNSMessageView(checking: copy.span.octets)
        var copies = again.records
        return (edit.effect(on: service), bytesOf(copies.next()?.data) ?? [])
    }

    private func without(_ keys: ServiceParameterKeys = [], _ protocols: String...) -> ServiceBindingEdit {
        ServiceBindingEdit(omittedKeys: keys, omittedProtocols: protocols.map { Array($0.utf8) })
    }

    @Test(arguments: ServiceBindingTests.vectors.indices)
    func `the vectors of RFC 9460 lose what is taken out and nothing else`(_ index: Int) throws {
        let vector = ServiceBindingTests.vectors[index]
        let data = hex(vector.wire)
        let type = RecordType(rawValue: vector.type)
        let none = try edited(data, without([.ech], "h3"), type)
        #expect(none.effect == .unchanged && none.data == data)
        // What the figures with hints and protocols are without them.
        let left = [
            "7": "0001 03666f6f076578616d706c6503636f6d00",
            "8": "0001 076578616d706c6503636f6d00",
            "9": "0010 03666f6f076578616d706c65036f726700 0000 0002 0001 0001 0003 02 6832",
            "10": "0010 03666f6f076578616d706c65036f726700 0001 0009 08 665c6f6f2c626172",
        ]
        var protocols = ["h3-19"]
        if vector.figure == "10" { protocols.append("h2") }
        let edit = ServiceBindingEdit(
            omittedKeys: [.ipv4Hint, .ipv6Hint], omittedProtocols: protocols.map { Array($0.utf8) })
        let some = try edited(data, edit, type)
        #expect(some.data == left[vector.figure].map { hex($0) } ?? data)
        #expect(some.effect == (left[vector.figure] == nil ? .unchanged : .changed))
    }

    @Test func `mandatory loses the keys that go, and goes when none is left`() throws {
        let data = hex("0001 00 0000 0004 0001 0005 0001 0003 02 6832 0005 0002 abcd ff00 0001 07")
        let some = try edited(data, without(.ech))
        #expect(some == (.changed, hex("0001 00 0000 0002 0001 0001 0003 02 6832 ff00 0001 07")))
        let all = try edited(hex("0001 00 0000 0004 0004 0006 0004 0004 c0000201 0006 0010") + v6, without(hints))
        #expect(all == (.changed, hex("0001 00")))
    }

    @Test func `without a protocol HTTPS has its default one, unless that is not spoken or alpn is mandatory`() throws {
        let h3 = "0001 0003 02 6833"
        #expect(try edited(hex("0001 00" + h3), without([], "h3")) == (.changed, hex("0001 00")))
        #expect(
            try edited(hex("0001 00" + h3 + "0003 0002 01bb"), without([], "h3"))
                == (.changed, hex("0001 00 0003 0002 01bb")))
        #expect(try edited(hex("0001 00" + h3 + "0002 0000"), without([], "h3")).effect == .unusable)
        #expect(try edited(hex("0001 00 0000 0002 0001" + h3), without([], "h3")).effect == .unusable)
        #expect(try edited(hex("0001 00" + h3 + "0002 0000"), without(.alpn)).effect == .unusable)
        // With another one all stays as it is.
        let both = "0001 0006 02 6832 02 6833"
        #expect(
            try edited(hex("0001 00 0000 0002 0001" + both + "0002 0000"), without([], "h3"))
                == (.changed, hex("0001 00 0000 0002 0001 0001 0003 02 6832 0002 0000")))
        // Other schemes have no default that is known.
        #expect(try edited(hex("0001 00" + h3), without([], "h3"), .svcb).effect == .unusable)
        #expect(try edited(hex("0001 00" + both), without([], "h3"), .svcb).effect == .changed)
    }

    @Test func `aliases stay as they are, whatever parameters they have`() throws {
        let data = hex("0000 01 61 00 0001 0003 02 6833 0005 0002 abcd")
        #expect(try edited(data, without(.ech, "h3")) == (.unchanged, data))
    }

    @Test func `identifiers are compared to the octet and as a whole`() throws {
        let data = hex("0001 00 0001 000c 02 6833 05 68332d3239 02 4833")
        #expect(try edited(data, without([], "h3")) == (.changed, hex("0001 00 0001 0009 05 68332d3239 02 4833")))
        #expect(try edited(data, without([], "h")).effect == .unchanged)
    }

    private let hints: ServiceParameterKeys = [.ipv4Hint, .ipv6Hint]
    private let v6: [UInt8] = hex("20010db8000000000000000000000001")

    /// A parameter as the model has it.
    private struct Model {
        var key: UInt16
        var value: [UInt8]
    }

    private func encoded(_ models: [Model]) -> [UInt8] {
        models.flatMap { model in
            [model.key, UInt16(model.value.count)].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } + model.value
        }
    }

    @Test func `records at random read back as the model of the edit says`() throws {
        var random = SeededGenerator(seed: 9460)
        for _ in 0..<2000 {
            let all: [UInt16] = [1, 2, 3, 4, 5, 6, 7, 8, 63, 64, 300, 65_280]
            let keys = all.filter { _ in Bool.random(using: &random) }
            var models = keys.map { key -> Model in
                switch key {
                case 1:
                    let names = (1...3).map { _ in ["h2", "h3", "dot"].randomElement(using: &random) ?? "h2" }
                    return Model(key: key, value: names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) })
                case 2: return Model(key: key, value: [])
                case 3: return Model(key: key, value: random.bytes(2))
                case 4: return Model(key: key, value: random.bytes(4 * Int.random(in: 1...3, using: &random)))
                case 6: return Model(key: key, value: random.bytes(16 * Int.random(in: 1...3, using: &random)))
                default: return Model(key: key, value: random.bytes(Int.random(in: 1...40, using: &random)))
                }
            }
            let listed = keys.filter { $0 != 2 && Int.random(in: 0..<3, using: &random) == 0 }
            if !listed.isEmpty {
                let value = listed.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
                models.insert(Model(key: 0, value: value), at: 0)
            }
            let omitted = [4, 5, 6].filter { _ in Bool.random(using: &random) } as [UInt16]
            let edit = ServiceBindingEdit(
                omittedKeys: ServiceParameterKeys(rawValue: omitted.reduce(0) { $0 | 1 << UInt64($1) }),
                omittedProtocols: [Array("h3".utf8)])
            let head = hex("0001 01 61 00")
            let result = try edited(head + encoded(models), edit)

            // The model: filter names, then keys, then the list of mandatory ones.
            var gone = Set(omitted)
            var expected = models
            if let index = expected.firstIndex(where: { $0.key == 1 }) {
                var (kept, rest) = ([UInt8](), expected[index].value[...])
                while let length = rest.first {
                    let name = rest.dropFirst().prefix(Int(length))
                    if Array(name) != Array("h3".utf8) { kept += [length] + name }
                    rest = rest.dropFirst(1 + Int(length))
                }
                expected[index].value = kept
                if kept.isEmpty {
                    if keys.contains(2) || listed.contains(1) {
                        #expect(result.effect == .unusable)
                        continue
                    }
                    gone.insert(1)
                }
            }
            expected.removeAll { gone.contains($0.key) }
            if let first = expected.first, first.key == 0 {
                let kept = listed.filter { !gone.contains($0) }.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
                if kept.isEmpty { expected.removeFirst() } else { expected[0].value = kept }
            }
            #expect(result.data == head + encoded(expected))
            #expect(result.effect == (encoded(expected) == encoded(models) ? .unchanged : .changed))
        }
    }
}
