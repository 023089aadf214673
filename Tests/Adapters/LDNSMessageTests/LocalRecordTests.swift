import ByteAccess
import DNSMessage
import IPPacket
import LDNSMessage
import TestSupport
import Testing

@Suite struct LocalRecordTests {
    @Test(arguments: RecordTexts.all)
    func `a record of each type is read by ldns and accepted by our view`(_ text: String) throws {
        let record = try ResourceRecord(parsing: text)
        #expect(record.timeToLive == 300 && record.recordClass == .internet)
        #expect(!record.data.isEmpty)
        #expect(record.owner.description == text.prefix { $0 != " " })
    }

    @Test func `a record has the bytes that its standard says`() throws {
        let mx = try ResourceRecord(parsing: "Example.COM. MX 10 mail.example.com.", defaultTimeToLive: 60)
        #expect(mx.type == .mx && mx.timeToLive == 60)
        #expect(Array(mx.owner.bytes) == hex("07 4578616d706c65 03 434f4d 00"))
        #expect(mx.data == hex("000a 04 6d61696c 07 6578616d706c65 03 636f6d 00"))
        // RFC 3597 §5.
        let unknown = try ResourceRecord(parsing: "a.example. 300 CLASS32 TYPE731 \\# 6 abcdef012345")
        #expect(
            unknown.type.rawValue == 731 && unknown.recordClass.rawValue == 32 && unknown.data == hex("abcdef012345"))
    }

    @Test(arguments: [
        "", "example.com.", "example.com. 300 IN A", "example.com. 300 IN A 192.0.2",
        "example.com. 300 IN AAAA 192.0.2.1",
        "example.com. 300 IN TYPE1 \\# 3 c00002", "a..b. 300 IN A 192.0.2.1",
    ])
    func `a text that is no record has a typed error`(_ text: String) {
        #expect(throws: LDNSError.self) { try ResourceRecord(parsing: text) }
    }

    @Test(arguments: ["a. 300 IN A 192.0.2.1\nb. 300 IN A 192.0.2.2", "a. 300 IN TXT \0", "a. 300 IN A 192.0.2.1\r"])
    func `a text of more than one line is none`(_ text: String) {
        #expect(throws: LDNSError.notOneLine) { try ResourceRecord(parsing: text) }
    }

    @Test func `a record of configuration is written into an answer`() throws {
        let record = try ResourceRecord(parsing: "www.example.com. 300 IN CNAME example.com.")
        let message = try written {
            var writer = MessageWriter(id: 1, flags: .response)
            try writer.append(record, into: &$0)
            return try writer.finish(into: &$0)
        }
        let text = try LDNSPacket(DNSMessageView(checking: message.span.octets)).text
        #expect(text.contains("www.example.com.\t300\tIN\tCNAME\texample.com."))
    }

    /// The vectors of RFC 9460, appendix D: the text on the left is the bytes on the right.
    @Test(arguments: [
        ("example.com. HTTPS 0 foo.example.com.", "0000 03666f6f076578616d706c6503636f6d00"),
        ("example.com. SVCB 1 .", "0001 00"),
        ("example.com. SVCB 16 foo.example.com. port=53", "0010 03666f6f076578616d706c6503636f6d00 0003 0002 0035"),
        (
            "example.com. SVCB 1 foo.example.com. key667=hello",
            "0001 03666f6f076578616d706c6503636f6d00 029b 0005 68656c6c6f"
        ),
        (
            "example.com. SVCB 1 foo.example.com. ipv6hint=\"2001:db8::1,2001:db8::53:1\"",
            "0001 03666f6f076578616d706c6503636f6d00 0006 0020 20010db8000000000000000000000001 20010db8000000000000000000530001"
        ),
        (
            "example.com. SVCB 16 foo.example.org. alpn=h2,h3-19 mandatory=ipv4hint,alpn ipv4hint=192.0.2.1",
            "0010 03666f6f076578616d706c65036f726700 0000 0004 0001 0004 0001 0009 02 6832 05 68332d3139 0004 0004 c0000201"
        ),
    ])
    func `ldns reads the vectors of RFC 9460 to the same bytes`(_ text: String, _ data: String) throws {
        #expect(try ResourceRecord(parsing: text).data == hex(data))
    }
}
