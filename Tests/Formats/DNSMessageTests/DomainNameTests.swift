import ByteAccess
import DNSMessage
import TestSupport
import Testing

@Suite struct DomainNameTests {
    /// The message of RFC 1035 §4.1.4: F.ISI.ARPA at 20, FOO.F.ISI.ARPA at 40, ARPA at 64, the root at 92.
    private static let compressionExample: [UInt8] = {
        var bytes = [UInt8](repeating: 0xEE, count: 93)
        bytes.replaceSubrange(20..<32, with: hex("01 46 03 495349 04 41525041 00"))
        bytes.replaceSubrange(40..<46, with: hex("03 464f4f c014"))
        bytes.replaceSubrange(64..<66, with: hex("c01a"))
        bytes[92] = 0
        return bytes
    }()

    @Test(arguments: [
        (20, "F.ISI.ARPA.", 12, 32), (40, "FOO.F.ISI.ARPA.", 16, 46), (64, "ARPA.", 6, 66), (92, ".", 1, 93),
    ])
    func `the compression example of RFC 1035 reads as it says`(
        _ offset: Int, _ text: String, _ length: Int, _ end: Int
    ) throws {
        let name = try DomainNameView(checking: Self.compressionExample.span.octets, at: offset)
        #expect(name.presentation == text)
        #expect(name.length == length)
        #expect(name.layout.endOffset == end)
        #expect(name.isRoot == (text == "."))
    }

    @Test func `a compressed name is written without compression`() throws {
        let bytes = Self.compressionExample
        let name = try DomainNameView(checking: bytes.span.octets, at: 40)
        #expect(try written { try name.write(into: &$0) } == hex("03 464f4f 01 46 03 495349 04 41525041 00"))
        #expect(
            try written { try name.write(into: &$0, lowercased: true) }
                == hex("03 666f6f 01 66 03 697369 04 61727061 00"))
        #expect(throws: DNSMessageError.outputTooSmall) { try written(size: 15) { try name.write(into: &$0) } }
    }

    @Test func `names are equal and hash equally in any case, and only ASCII letters have one`() throws {
        let same = [("www.Example.COM", "WWW.eXAMPLE.com"), (".", "."), ("a\\000B", "A\\000b"), ("\\064z", "@Z")]
        for (left, right) in same {
            let (left, right) = (try DomainName(parsing: left), try DomainName(parsing: right))
            #expect(left == right && left.hashValue == right.hashValue)
            let isEqual = left.view.isEqual(to: right.view)
            #expect(isEqual)
        }
        // One bit apart as upper and lower case are, but no letters: @ and `, [ and {, and two that Latin-1 takes for letters.
        let different = [("\\064", "\\096"), ("\\091", "\\123"), ("\\192", "\\224"), ("a.bc", "ab.c"), ("a", "a.a")]
        for (left, right) in different {
            let (left, right) = (try DomainName(parsing: left), try DomainName(parsing: right))
            #expect(left != right)
            let isEqual = left.view.isEqual(to: right.view)
            #expect(!isEqual)
        }
        let (mixed, lower) = (try DomainName(parsing: "ExAmPlE"), try DomainName(parsing: "example"))
        let (hasSame, hasOwn) = (mixed.view.hasSameOctets(as: lower.view), mixed.view.hasSameOctets(as: mixed.view))
        #expect(!hasSame && hasOwn)
    }

    @Test func `the canonical order is that of RFC 4034, and of its example`() throws {
        let ordered = try [
            "example", "a.example", "yljkjljk.a.example", "Z.a.example", "zABC.a.EXAMPLE", "z.example",
            "\\001.z.example", "*.z.example", "\\200.z.example",
        ].map { try DomainName(parsing: $0) }
        for (index, left) in ordered.enumerated() {
            for (otherIndex, right) in ordered.enumerated() {
                let order = left.view.canonicalOrder(to: right.view)
                #expect(order.signum() == (index - otherIndex).signum(), "\(left) \(right)")
            }
        }
    }

    @Test(arguments: [
        ("www.example.com", "example.com", true), ("example.com", "EXAMPLE.com", true), ("a.b", ".", true),
        ("badexample.com", "example.com", false), ("com", "example.com", false), (".", "com", false),
        ("example.com.evil", "example.com", false),
    ])
    func `a subdomain ends in all labels of the other`(_ name: String, _ zone: String, _ isBelow: Bool) throws {
        let (name, zone) = (try DomainName(parsing: name), try DomainName(parsing: zone))
        let isSubdomain = name.view.isSubdomain(of: zone.view)
        #expect(isSubdomain == isBelow)
    }

    @Test(arguments: [
        ("www.example.com", "03 777777 07 6578616d706c65 03 636f6d 00", "www.example.com."),
        ("www.example.com.", "03 777777 07 6578616d706c65 03 636f6d 00", "www.example.com."),
        (".", "00", "."),
        ("a\\.b.c", "03 612e62 01 63 00", "a\\.b.c."),
        ("\\000\\255", "02 00ff 00", "\\000\\255."),
        ("a\\ b", "03 612062 00", "a\\032b."),
        ("\\\\\\\"\\(\\)\\;\\@\\$", "07 5c2228293b4024 00", "\\\\\\\"\\(\\)\\;\\@\\$."),
        ("_dns._tcp", "04 5f646e73 04 5f746370 00", "_dns._tcp."),
        // UTF-8 is taken as octets.
        ("é", "02 c3a9 00", "\\195\\169."),
    ])
    func `names are read from and printed to the form of zone files`(
        _ text: String, _ wire: String, _ printed: String
    ) throws {
        let name = try DomainName(parsing: text)
        #expect(Array(name.bytes) == hex(wire))
        #expect(name.description == printed)
        #expect(try DomainName(parsing: printed) == name)
    }

    @Test(arguments: [
        ("", DomainNameTextError.emptyName), ("..", .emptyLabel), (".a", .emptyLabel), ("a..b", .emptyLabel),
        ("a\\", .invalidEscape), ("\\1", .invalidEscape), ("\\12x", .invalidEscape), ("\\256", .invalidEscape),
        ("\\999", .invalidEscape), (String(repeating: "a", count: 64), .labelTooLong),
    ])
    func `a text that is no name has a typed error`(_ text: String, _ error: DomainNameTextError) {
        #expect(throws: error) { try DomainName(parsing: text) }
    }

    @Test func `255 octets and 127 labels are a name, one more is none`() throws {
        let label = String(repeating: "a", count: 63)
        let longest = try DomainName(parsing: "\(label).\(label).\(label).\(label.dropLast(2))")
        #expect(longest.bytes.byteCount == 255)
        #expect(throws: DomainNameTextError.nameTooLong) {
            try DomainName(parsing: "\(label).\(label).\(label).\(label)")
        }
        let deepest = try DomainName(parsing: String(repeating: "a.", count: 127))
        #expect(deepest.view.labelCount == 127 && deepest.bytes.byteCount == 255)
        #expect(throws: DomainNameTextError.nameTooLong) {
            try DomainName(parsing: String(repeating: "a.", count: 128))
        }
        let bytes = try query(deepest.description)
        #expect(queryError(bytes) == nil)
    }

    @Test func `a chain of pointers of the length that a name can have labels is followed`() throws {
        var bytes = [UInt8](repeating: 0, count: 12) + hex("01 61 00")
        for index in 0..<127 {
            let target = index == 0 ? 12 : 15 + 2 * (index - 1)
            bytes += [0xC0 | UInt8(target >> 8), UInt8(target & 0xFF)]
        }
        let name = try DomainNameView(checking: bytes.span.octets, at: bytes.count - 2)
        #expect(name.presentation == "a.")
        let longer = bytes + [0xC0 | UInt8((bytes.count - 2) >> 8), UInt8((bytes.count - 2) & 0xFF)]
        #expect(throws: DNSMessageError.tooManyPointers) {
            _ = try DomainNameView(checking: longer.span.octets, at: bytes.count)
        }
    }

    @Test func `labels come one by one, with arbitrary octets`() throws {
        let name = try DomainName(parsing: "a\\.b.\\000.example")
        var labels: [[UInt8]] = []
        let view = name.view
        var cursor = view.labels
        while let label = cursor.next() { labels.append(Array(label)) }
        #expect(labels == [hex("612e62"), hex("00"), hex("6578616d706c65")])
        var rest: [[UInt8]] = []
        cursor = view.labels(from: 2)
        while let label = cursor.next() { rest.append(Array(label)) }
        #expect(rest == [hex("6578616d706c65")])
        cursor = view.labels(from: 9)
        let beyond = cursor.next() == nil
        #expect(beyond)
    }
}
