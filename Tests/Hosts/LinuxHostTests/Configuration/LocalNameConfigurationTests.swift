import DNSMessage
import TestSupport
import Testing

@testable import LinuxHost

/// The keys of `dns` about names that the proxy knows by itself.
struct LocalNameConfigurationTests {
    private func read(_ keys: String) throws -> DNSConfiguration? {
        try inTemporaryFolder { folder in
            try writeFile("192.0.2.1 a.example\n", to: "\(folder)/hosts", mode: 0o644)
            let text = "{ dns: { upstreams: [{ name: 'main', url: 'udp://192.0.2.1' }],\n\(keys) } }"
            try writeFile(text.replacing("FOLDER", with: folder), to: "\(folder)/a.json5", mode: 0o644)
            return try LoadedConfiguration.read("\(folder)/a.json5").value.dns
        }
    }

    private func problems(_ keys: String) throws -> [String] {
        let errors = #expect(throws: ConfigurationErrors.self) { try read(keys) }
        return errors?.errors.map { "\($0.line ?? 0): \($0.key ?? ""): \($0.problem)" } ?? []
    }

    @Test func everyKeyIsRead() throws {
        let dns = try read(
            #"""
            records: ["nas.example 60 IN A 192.0.2.9", "\tnas.example.\tTXT\t\"a; b\" c"], hostsFile: "FOLDER/hosts",
            rebindingAllow: ["Plex.Direct."], privateRelay: "block", singleLabels: "forward"
            """#)
        #expect(dns?.records.map(\.type) == [.a, .txt] && dns?.records.map(\.timeToLive) == [60, 300])
        #expect(dns?.records.map(\.owner.description) == ["nas.example.", "nas.example."])
        #expect(dns?.records.map(\.data) == [[192, 0, 2, 9], [4] + Array("a; b".utf8) + [1] + Array("c".utf8)])
        #expect(dns?.hostsFiles.map { $0.hasSuffix("/hosts") } == [true])
        #expect(dns?.rebindingAllowed == ["plex.direct"])
        #expect(dns?.privateRelay == .block && dns?.singleLabels == .forward)
        #expect(try read("hostsFile: ['FOLDER/hosts', 'FOLDER/a.json5']")?.hostsFiles.count == 2)
        let standard = try read("")
        #expect(standard?.records == [] && standard?.hostsFiles == [] && standard?.rebindingAllowed == [])
        #expect(standard?.privateRelay == .allow && standard?.singleLabels == .local)
    }

    @Test func aWrongRecordIsNamedWithItsLine() throws {
        let expected = "expected a record such as \"nas.example 300 IN A 192.0.2.9\""
        #expect(
            try problems("records: ['a.example A 192.0.2.1',\n'x.example A 192.0.2'] ") == [
                "3: dns.records[1]: \(expected); ldns says: Syntax error, could not parse the RR's rdata"
            ])
        #expect(try problems("records: [7]") == ["2: dns.records[0]: \(expected)"])
        #expect(try problems("records: ['. A 192.0.2.1']") == ["2: dns.records[0]: \(expected)"])
        #expect(
            try problems(#"records: ["a A 192.0.2.1\nb A 192.0.2.2"]"#)
                == ["2: dns.records[0]: \(expected); it is more than one line"])
        #expect(try problems("records: 'a A 192.0.2.1'") == ["2: dns.records: expected a list"])
    }

    @Test func recordsThatDoNotGoTogetherAreRefused() throws {
        #expect(
            try problems("records: ['a.example A 192.0.2.1', 'A.example 60 A 192.0.2.1']")
                == ["2: dns.records[1]: is there already"])
        #expect(
            try problems("records: ['a.example A 192.0.2.1', 'a.example CNAME b.example']")
                == ["2: dns.records[1]: is beside a CNAME: a name that has one has nothing else"])
        #expect(try problems("records: ['a.example CH TXT x']") == ["2: dns.records[0]: is not of class IN"])
        #expect(
            try problems(
                "records: ['a.example CNAME b.example', 'b.example CNAME a.example', 'c.example CNAME x.test']")
                == ["2: dns.records[0]: leads round in a circle", "2: dns.records[1]: leads round in a circle"])
    }

    @Test func otherKeysAreStrictToo() throws {
        #expect(try problems("hostsFile: 'hosts'") == ["2: dns.hostsFile: expected an absolute path"])
        #expect(
            try problems("hostsFile: ['/nowhere/hosts']")
                == ["2: dns.hostsFile[0]: /nowhere/hosts cannot be read: No such file or directory"])
        #expect(
            try problems("hostsFile: ['FOLDER/hosts', 'FOLDER/hosts']") == [
                "2: dns.hostsFile[1]: is in the list already"
            ])
        #expect(try problems("privateRelay: true") == ["2: dns.privateRelay: expected \"allow\" or \"block\""])
        #expect(try problems("singleLabels: 'yes'") == ["2: dns.singleLabels: expected \"local\" or \"forward\""])
        #expect(
            try problems("rebindingAllow: ['a b']")
                == ["2: dns.rebindingAllow[0]: expected a name such as corp.example, which stands for all below it too"]
        )
    }
}
