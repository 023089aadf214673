import ByteAccess
import DNSMessage
import IPPacket
import TestSupport
import Testing

@Suite struct EDNSTests {
    private func option(_ code: UInt16, _ value: [UInt8]) -> [UInt8] {
        [UInt8(code >> 8), UInt8(code & 0xFF), UInt8(value.count >> 8), UInt8(value.count & 0xFF)] + value
    }

    @Test func `the fields are where RFC 6891 and RFC 3225 have them`() throws {
        let bytes = hex(
            "abcd 0100 0001 0000 0000 0001 \(SampleMessages.example) 0001 0001 00 0029 1000 12 00 8000 0000")
        let view = try QueryView(checking: bytes.span.octets)
        guard let edns = view.edns else { throw Absent() }
        #expect(edns.udpPayloadSize == 4096 && edns.extendedResponseCode == 0x12 && edns.version == 0)
        #expect(edns.dnssecOK && view.dnssecOK && view.understandsAuthenticData)
        #expect(edns.optionBytes.byteCount == 0)
    }

    @Test(arguments: [(0, 512, 512), (511, 512, 512), (512, 512, 512), (1232, 1232, 1232), (65_535, 65_535, 1232)])
    func `a payload size below 512 counts as 512, and answers have a cap`(
        _ size: UInt16, _ effective: Int, _ limit: Int
    ) throws {
        let bytes = try query("example.com", opt: opt(size: size))
        let view = try QueryView(checking: bytes.span.octets)
        #expect(view.edns?.effectiveUDPPayloadSize == effective)
        #expect(view.answerLimit() == limit)
        let plain = try query("example.com")
        #expect(try QueryView(checking: plain.span.octets).answerLimit() == 512)
    }

    @Test func `options are walked, and unknown ones passed over`() throws {
        let options =
            option(100, [1]) + option(8, hex("0001 18 00 c00002")) + option(10, hex("0102030405060708"))
            + option(11, [])
            + option(12, [0, 0, 0])
        let bytes = try query("example.com", opt: opt(options))
        let view = try QueryView(checking: bytes.span.octets)
        guard let edns = view.edns else { throw Absent() }
        var codes: [UInt16] = []
        var cursor = edns.options
        while let option = cursor.next() { codes.append(option.code.rawValue) }
        #expect(codes == [100, 8, 10, 11, 12])
        #expect(try edns.clientSubnet == ClientSubnet(address: .v4(IPv4Address(192, 0, 2, 0)), sourcePrefixLength: 24))
        #expect(try edns.cookie?.isClientOnly == true)
        #expect(edns.tcpKeepalive == .request && edns.paddingLength == 3)
        #expect(bytesOf(edns.value(of: EDNSOptionCode(rawValue: 100))) == [1])
    }

    @Test func `an extended error has its code in front of its text`() throws {
        let bytes = try query("example.com", flags: 0x8180, opt: opt(option(15, hex("000f 6c697374"))))
        let view = try DNSMessageView(checking: bytes.span.octets)
        guard let error = view.edns?.extendedError else { throw Absent() }
        #expect(error.code == .blocked)
        #expect(Array(error.text) == Array("list".utf8))
        let short = try query("example.com", flags: 0x8180, opt: opt(option(15, [0])))
        let hasNone = try DNSMessageView(checking: short.span.octets).edns?.extendedError == nil
        #expect(hasNone)
    }

    @Test func `everything that can be written reads back`() throws {
        var fields = EDNSFields(udpPayloadSize: 1400, dnssecOK: true)
        fields.extendedError = ExtendedError(.filtered, text: "by häme")
        fields.tcpKeepalive = .timeout(tenthsOfSecond: 200)
        fields.clientSubnet = ClientSubnet(
            address: .v6(IPv6Address(high: 0x2001_0DB8_0012_3000, low: 0)), sourcePrefixLength: 52,
            scopePrefixLength: 48)
        fields.cookie = try EDNSCookie(parsing: hex("0102030405060708 1112131415161718").span.octets)
        fields.paddingBlock = EDNSFields.answerPaddingBlock
        let asked = try query("example.com", opt: opt(dnssecOK: true))
        let echo = try QueryView(checking: asked.span.octets).echo
        let answer = try written { try echo.writeFailure(.refused, edns: fields, into: &$0) }
        #expect(answer.count == 468)
        let view = try DNSMessageView(checking: answer.span.octets)
        guard let edns = view.edns else { throw Absent() }
        #expect(edns.udpPayloadSize == 1400 && edns.dnssecOK && edns.version == 0)
        #expect(edns.extendedError?.code == .filtered)
        #expect(bytesOf(edns.extendedError?.text) == Array("by häme".utf8))
        #expect(edns.tcpKeepalive == .timeout(tenthsOfSecond: 200))
        #expect(try edns.clientSubnet == fields.clientSubnet)
        #expect(try edns.cookie.map { Array($0.bytes) } == hex("0102030405060708 1112131415161718"))
        // Padding is zeros (RFC 7830 §3).
        #expect(bytesOf(edns.value(of: .padding))?.allSatisfy { $0 == 0 } == true)
    }

    @Test func `a text goes before anything else when space is short, and padding is cut to the limit`() throws {
        let asked = try query("example.com", opt: opt())
        let echo = try QueryView(checking: asked.span.octets).echo
        var fields = EDNSFields()
        fields.extendedError = ExtendedError(.blocked, text: String(repeating: "x", count: 600))
        let answer = try written { try echo.writeFailure(.refused, edns: fields, limit: 512, into: &$0) }
        let view = try DNSMessageView(checking: answer.span.octets)
        let textLength = view.edns?.extendedError?.text.byteCount
        #expect(view.edns?.extendedError?.code == .blocked && textLength == 0)
        fields.extendedError?.text = "short"
        fields.paddingBlock = 468
        let padded = try written { try echo.writeFailure(.refused, edns: fields, limit: 200, into: &$0) }
        #expect(padded.count == 200)
        #expect(messageError(padded) == nil)
    }

    @Test(arguments: [40, 100, 113, 114, 200])
    func `queries are padded to blocks of 128 bytes`(_ length: Int) throws {
        let name =
            String(repeating: "a", count: min(63, length / 2)) + "."
            + String(repeating: "b", count: min(63, length / 4))
            + "." + String(repeating: "c", count: max(1, length / 4))
        var edns = EDNSFields()
        edns.paddingBlock = EDNSFields.queryPaddingBlock
        let view = try DomainName(parsing: name)
        let bytes = try written { try OutgoingQuery(id: 0, edns: edns).write(view.view, type: .a, into: &$0) }
        #expect(bytes.count % 128 == 0)
        #expect(queryError(bytes) == nil)
    }
}
