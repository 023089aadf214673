import ByteAccess
import DNSMessage
import IPPacket
import TestSupport
import Testing

/// Messages that are built from a model read back as the model.
@Suite struct BuildingPropertyTests {
    /// A record as the tests think of it.
    private struct Model: Equatable {
        var owner: [[UInt8]]
        var type: UInt16
        var timeToLive: UInt32
        var target: [[UInt8]]?
        var data: [UInt8]
    }

    /// Labels of a few letters, so that names share their ends, and some of arbitrary octets.
    private static func labels(using random: inout SeededGenerator) -> [[UInt8]] {
        (0..<Int.random(in: 0...5, using: &random)).map { _ in
            if Int.random(in: 0..<8, using: &random) == 0 {
                return random.bytes(Int.random(in: 1...40, using: &random))
            }
            return [UInt8.random(in: 0x61...0x63, using: &random)]
        }
    }

    private static func wire(_ labels: [[UInt8]]) -> [UInt8] {
        labels.flatMap { [UInt8($0.count)] + $0 } + [0]
    }

    private static func labels(of name: borrowing DomainNameView) -> [[UInt8]] {
        var labels: [[UInt8]] = []
        var cursor = name.labels
        while let label = cursor.next() { labels.append(Array(label)) }
        return labels
    }

    private static func model(using random: inout SeededGenerator) -> Model {
        let type = ([1, 28, 5, 2, 12, 39, 16, 65_400] as [UInt16])[Int.random(in: 0..<8, using: &random)]
        var model = Model(
            owner: labels(using: &random), type: type, timeToLive: UInt32.random(in: 0..<0x8000_0000, using: &random),
            target: nil, data: [])
        switch type {
        case 1: model.data = random.bytes(4)
        case 28: model.data = random.bytes(16)
        case 16:
            let text = random.bytes(Int.random(in: 0...60, using: &random))
            model.data = [UInt8(text.count)] + text
        case 65_400: model.data = random.bytes(Int.random(in: 0...60, using: &random))
        default: model.target = labels(using: &random)
        }
        return model
    }

    private static func append(_ model: Model, to writer: inout MessageWriter, _ output: inout MutableRawSpan) throws {
        let owner = wire(model.owner)
        let name = try DomainNameView(checking: owner.span.octets, at: 0)
        let type = RecordType(rawValue: model.type)
        if let target = model.target {
            let bytes = wire(target)
            let view = try DomainNameView(checking: bytes.span.octets, at: 0)
            try writer.append(owner: name, type: type, target: view, timeToLive: model.timeToLive, into: &output)
        } else {
            try writer.append(
                owner: name, type: type, timeToLive: model.timeToLive, data: model.data.span.octets, into: &output)
        }
    }

    private static func read(_ bytes: [UInt8]) throws -> [Model] {
        let view = try DNSMessageView(checking: bytes.span.octets)
        var models: [Model] = []
        var records = view.records
        while let record = records.next() {
            var target: [[UInt8]]?
            if let name = record.target { target = labels(of: name) }
            models.append(
                Model(
                    owner: labels(of: record.owner), type: record.type.rawValue, timeToLive: record.timeToLive,
                    target: target, data: target == nil ? Array(record.data) : []))
        }
        return models
    }

    @Test func `what is built reads back, compressed and octet for octet`() throws {
        var random = SeededGenerator(seed: 1034)
        var (compressed, whole) = (0, 0)
        for _ in 0..<2_000 {
            let models = (0..<Int.random(in: 0...20, using: &random)).map { _ in Self.model(using: &random) }
            let bytes = try written {
                var writer = MessageWriter(id: 1, flags: .response)
                for model in models { try Self.append(model, to: &writer, &$0) }
                return try writer.finish(into: &$0)
            }
            #expect(try Self.read(bytes) == models)
            compressed += bytes.count
            whole += models.reduce(12) { sum, model in
                sum + Self.wire(model.owner).count + 10 + (model.target.map(Self.wire) ?? model.data).count
            }
        }
        // Names that share their ends are shorter by what they share; data, most of all this is, stays as long as it was.
        #expect(compressed < whole)
    }

    @Test func `a record that does not fit leaves what was written before`() throws {
        var random = SeededGenerator(seed: 2181)
        for _ in 0..<500 {
            let models = (0..<12).map { _ in Self.model(using: &random) }
            let limit = Int.random(in: 12...400, using: &random)
            var fitting: [Model] = []
            let bytes = try written {
                var writer = MessageWriter(id: 1, flags: .response, limit: limit)
                for model in models where (try? Self.append(model, to: &writer, &$0)) != nil { fitting.append(model) }
                return try writer.finish(into: &$0)
            }
            #expect(bytes.count <= limit)
            #expect(try Self.read(bytes) == fitting)
        }
    }

    @Test func `names beyond the reach of pointers are written whole`() throws {
        var random = SeededGenerator(seed: 16_383)
        let filling = Model(owner: [[0x61]], type: 65_400, timeToLive: 1, target: nil, data: random.bytes(9_000))
        let named = Model(owner: [[0x62], [0x63]], type: 5, timeToLive: 1, target: [[0x64], [0x63]], data: [])
        let models = [filling, filling, named, named]
        let bytes = try written {
            var writer = MessageWriter(id: 1, flags: .response)
            for model in models { try Self.append(model, to: &writer, &$0) }
            return try writer.finish(into: &$0)
        }
        #expect(try Self.read(bytes) == models)
    }
}
