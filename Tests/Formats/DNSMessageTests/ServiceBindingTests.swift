import ByteAccess
import DNSMessage
import IPPacket
import TestSupport
import Testing

/// The vectors of RFC 9460, appendix D.
@Suite struct ServiceBindingTests {
    static let vectors:
        [(figure: String, type: UInt16, wire: String, priority: UInt16, target: String, keys: [UInt16])] = [
            ("2", 65, "0000 03666f6f076578616d706c6503636f6d00", 0, "foo.example.com.", []),
            ("3", 64, "0001 00", 1, ".", []),
            ("4", 64, "0010 03666f6f076578616d706c6503636f6d00 0003 0002 0035", 16, "foo.example.com.", [3]),
            ("5", 64, "0001 03666f6f076578616d706c6503636f6d00 029b 0005 68656c6c6f", 1, "foo.example.com.", [667]),
            (
                "6", 64, "0001 03666f6f076578616d706c6503636f6d00 029b 0009 68656c6c6fd2716f6f", 1, "foo.example.com.",
                [667]
            ),
            (
                "7", 64,
                "0001 03666f6f076578616d706c6503636f6d00 0006 0020 20010db8000000000000000000000001 20010db8000000000000000000530001",
                1, "foo.example.com.", [6]
            ),
            (
                "8", 64, "0001 076578616d706c6503636f6d00 0006 0010 20010db80122034400000000c0000221", 1,
                "example.com.", [6]
            ),
            (
                "9", 64,
                """
                0010 03666f6f076578616d706c65036f726700 0000 0004 0001 0004 0001 0009 02 6832 05 68332d3139 0004 0004 c0000201
                """, 16, "foo.example.org.", [0, 1, 4]
            ),
            (
                "10", 64, "0010 03666f6f076578616d706c65036f726700 0001 000c 08 665c6f6f2c626172 02 6832", 16,
                "foo.example.org.", [1]
            ),
        ]

    @Test(arguments: vectors.indices)
    func `the vectors of RFC 9460 read as they say`(_ index: Int) throws {
        let vector = Self.vectors[index]
        let bytes = try answer([record("c00c", vector.type, hex(vector.wire))], type: RecordType(rawValue: vector.type))
        let view = try DNSMessageView(checking: bytes.span.octets)
        var records = view.records
        guard let service = records.next() else { throw Absent() }
        #expect(service.priority == vector.priority && service.isServiceAlias == (vector.priority == 0))
        #expect(service.target?.presentation == vector.target)
        var keys: [UInt16] = []
        var addresses: [String] = []
        var parameters = service.serviceParameters
        while let parameter = parameters.next() {
            keys.append(parameter.key.rawValue)
            for index in 0..<parameter.addressCount { addresses.append(parameter.address(at: index).description) }
            if parameter.key == .port { #expect(parameter.port == 53) }
        }
        #expect(keys == vector.keys)
        let hints = ["7": ["2001:db8::1", "2001:db8::53:1"], "8": ["2001:db8:122:344::c000:221"], "9": ["192.0.2.1"]]
        #expect(addresses == hints[vector.figure, default: []])
    }

    private func copied(_ data: String, omitting keys: ServiceParameterKeys) throws -> [UInt8] {
        let bytes = try answer([record("c00c", 65, hex(data))], type: .https)
        let view = try DNSMessageView(checking: bytes.span.octets)
        var records = view.records
        guard let service = records.next() else { throw Absent() }
        let copy = try written {
            var writer = MessageWriter(id: 0, flags: .response)
            try writer.append(service, applying: ServiceBindingEdit(omittedKeys: keys), into: &$0)
            return try writer.finish(into: &$0)
        }
        let again = try DNSMessageView(checking: copy.span.octets)
        var copies = again.records
        return bytesOf(copies.next()?.data) ?? []
    }

    @Test func `a key that is left out leaves mandatory too`() throws {
        let data =
            "0001 00 0000 0004 0001 0005 0001 0003 02 6832 0005 0002 abcd 0006 0010 20010db8000000000000000000000001"
        #expect(
            try copied(data, omitting: .ech)
                == hex("0001 00 0000 0002 0001 0001 0003 02 6832 0006 0010 20010db8000000000000000000000001"))
        #expect(
            try copied(data, omitting: [.ech, .alpn]) == hex("0001 00 0006 0010 20010db8000000000000000000000001"))
        #expect(try copied(data, omitting: []) == hex(data))
    }

    @Test func `without alpn there is no no-default-alpn`() throws {
        #expect(
            try copied("0001 00 0001 0003 02 6832 0002 0000 0003 0002 01bb", omitting: .alpn)
                == hex("0001 00 0003 0002 01bb"))
    }
}
