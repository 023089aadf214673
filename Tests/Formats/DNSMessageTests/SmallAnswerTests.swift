import ByteAccess
import DNSMessage
import IPPacket
import TestSupport
import Testing

@Suite struct SmallAnswerTests {
    private func echoed(
        _ name: String, _ type: RecordType = .a, flags: UInt16 = 0x0110, opt: [UInt8]? = nil, size: Int = 65_535,
        _ body: (borrowing QueryEcho, inout MutableRawSpan) throws -> Int
    ) throws -> [UInt8] {
        let bytes = try query(name, type, flags: flags, opt: opt)
        let echo = try QueryView(checking: bytes.span.octets).echo
        return try written(size: size) { try body(echo, &$0) }
    }

    @Test func `an answer repeats ID, RD, CD and the question in its own case, and sets QR and RA`() throws {
        let answer = try echoed("eXaMpLe.COM") { try $0.writeFailure(.serverFailure, into: &$1) }
        #expect(answer == hex("abcd 8192 0001 0000 0000 0000 07 6558614d704c65 03 434f4d 00 0001 0001"))
    }

    @Test func `a query without EDNS gets no OPT record, one with EDNS a fresh one`() throws {
        let plain = try echoed("example.com") { try $0.writeFailure(.refused, into: &$1) }
        #expect(try DNSHeader(parsing: plain.span.octets).additionalCount == 0)
        let unknown = opt(hex("0064 0001 07"), dnssecOK: true)
        let answers = [
            try echoed("example.com", opt: unknown) { try $0.writeFailure(.refused, into: &$1) },
            try echoed("example.com", opt: unknown) { try $0.writeNegative(.noError, timeToLive: 9, into: &$1) },
            try echoed("example.com", .any, opt: unknown) { try $0.writeMinimalAny(timeToLive: 9, into: &$1) },
            try echoed("example.com", opt: unknown) {
                try $0.writeAddresses([.v4(.unspecified)].span, timeToLive: 9, into: &$1)
            },
        ]
        for answer in answers {
            #expect(Array(answer.suffix(11)) == hex("00 0029 04d0 0000 8000 0000"))
            #expect(messageError(answer) == nil)
        }
    }

    @Test func `BADVERS has its upper bits in an OPT record of version 0`() throws {
        let bytes = try query("example.com", opt: opt(version: 1))
        #expect(queryError(bytes) == .unsupportedEDNSVersion)
        let echo = try QueryEcho(of: bytes.span.octets)
        let answer = try written { try echo.writeFailure(.badVersion, into: &$0) }
        #expect(answer[3] & 0xF == 0)
        #expect(Array(answer.suffix(11)) == hex("00 0029 04d0 0100 0000 0000"))
    }

    @Test func `a negative answer has an SOA record whose TTL and MINIMUM are the same`() throws {
        let noData = try echoed("ads.example.com") { try $0.writeNegative(.noError, timeToLive: 10, into: &$1) }
        let view = try DNSMessageView(checking: noData.span.octets)
        var records = view.records(in: .authority)
        guard let record = records.next(), let authority = record.startOfAuthority else { throw Absent() }
        #expect(record.owner.presentation == "ads.example.com.")
        #expect(record.timeToLive == 10 && authority.minimum == 10)
        #expect(authority.mailbox.presentation == "nobody.invalid.")
        #expect(view.answerKind == .noData && view.cacheLifetime == .negative(10))
    }

    @Test(arguments: [(nil, "example.com."), (1, "com."), (0, "."), (3, "ads.example.com."), (9, "ads.example.com.")])
    func `the zone of a name that does not exist is above it, or what the caller says`(
        _ labels: Int?, _ zone: String
    ) throws {
        let answer = try echoed("ads.example.com") {
            try $0.writeNegative(.nameError, timeToLive: 10, zoneLabelCount: labels, into: &$1)
        }
        let view = try DNSMessageView(checking: answer.span.octets)
        var records = view.records(in: .authority)
        guard let record = records.next(), let authority = record.startOfAuthority else { throw Absent() }
        #expect(record.owner.presentation == zone && authority.primaryServer.presentation == zone)
        #expect(view.answerKind == .nameError)
    }

    @Test func `negative answers about the root are in order`() throws {
        for code in [ResponseCode.noError, .nameError] {
            let answer = try echoed(".", .ns) { try $0.writeNegative(code, timeToLive: 10, into: &$1) }
            #expect(messageError(answer) == nil)
        }
    }

    @Test func `the addresses that were asked for are in the answer, each once`() throws {
        let addresses: [IPAddress] = [
            .v4(IPv4Address(192, 0, 2, 1)), .v6(.loopback), .v4(IPv4Address(192, 0, 2, 2)),
        ]
        let answer = try echoed("Example.com") { try $0.writeAddresses(addresses.span, timeToLive: 10, into: &$1) }
        #expect(
            Array(answer[29...])
                == hex("c00c 0001 0001 0000000a 0004 c0000201 c00c 0001 0001 0000000a 0004 c0000202"))
        let ipv6 = try echoed("example.com", .aaaa) { try $0.writeAddresses(addresses.span, timeToLive: 10, into: &$1) }
        let view = try DNSMessageView(checking: ipv6.span.octets)
        var records = view.records
        #expect(records.next()?.address == .v6(.loopback))
        let other = try echoed("example.com", .https) {
            try $0.writeAddresses(addresses.span, timeToLive: 10, into: &$1)
        }
        #expect(try DNSMessageView(checking: other.span.octets).cacheLifetime == .negative(10))
    }

    @Test func `addresses that do not fit are all left out and TC is set`() throws {
        let addresses = (0..<60).map { IPAddress.v4(IPv4Address(bits: 0xC000_0200 + $0)) }
        for opt in [nil, opt()] {
            let answer = try echoed("example.com", opt: opt) {
                try $0.writeAddresses(addresses.span, timeToLive: 10, limit: 512, into: &$1)
            }
            let view = try DNSMessageView(checking: answer.span.octets)
            #expect(view.header.flags.contains(.truncated) && view.header.answerCount == 0)
            let hasOPT = view.edns != nil
            #expect(hasOPT == (opt != nil))
        }
        let all = try echoed("example.com") { try $0.writeAddresses(addresses.span, timeToLive: 10, into: &$1) }
        #expect(try DNSHeader(parsing: all.span.octets).answerCount == 60)
    }

    @Test func `the answer to ANY is the HINFO record of RFC 8482`() throws {
        let answer = try echoed("example.com", .any) { try $0.writeMinimalAny(timeToLive: 3789, into: &$1) }
        #expect(Array(answer[29...]) == hex("c00c 000d 0001 00000ecd 0009 07 52464338343832 00"))
    }

    @Test func `a buffer that is too small is an error`() throws {
        for size in 0..<12 {
            #expect(throws: DNSMessageError.outputTooSmall) {
                try echoed(".", size: size) { try $0.writeFailure(.refused, into: &$1) }
            }
        }
        for size in 12..<60 {
            _ = try? echoed("example.com", opt: opt(), size: size) {
                try $0.writeNegative(.noError, timeToLive: 1, into: &$1)
            }
        }
    }

    @Test func `a query of ours has RD, the flags and the EDNS that it is to have`() throws {
        let name = try DomainName(parsing: "Example.com")
        let plain = try written { try OutgoingQuery(id: 7, edns: nil).write(name.view, type: .mx, into: &$0) }
        #expect(plain == hex("0007 0100 0001 0000 0000 0000 07 4578616d706c65 03 636f6d 00 000f 0001"))
        let query = OutgoingQuery(
            id: 0, checkingDisabled: true, wantsAuthenticData: true, edns: EDNSFields(dnssecOK: true))
        let full = try written { try query.write(name.view, type: .a, into: &$0) }
        #expect(Array(full[..<12]) == hex("0000 0130 0001 0000 0000 0001"))
        #expect(Array(full.suffix(11)) == hex("00 0029 04d0 0000 8000 0000"))
    }
}
