import ByteAccess
import DNSMessage
import FoundationEssentials
import JSON5
import Provider
import Testing

@testable import LinuxHost

@Suite struct ControlRequestTests {
    private func request(_ line: String) throws(ControlRequestError) -> ControlRequest {
        try ControlRequest(reading: line.utf8Span.span.octets)
    }

    @Test(
        arguments: [
            (#"{"status": {}}"#, .status(after: nil, timeLimit: .seconds(0))),
            (#" { "status" : { } } "#, .status(after: nil, timeLimit: .seconds(0))),
            (#"{"status": {"after": 17, "timeLimitSeconds": 60}}"#, .status(after: 17, timeLimit: .seconds(60))),
            (#"{"status": {"after": 0}}"#, .status(after: 0, timeLimit: .seconds(0))),
            (#"{"queries": {}}"#, .queries(QueryLogRequest())),
            (#"{"queries":{"from":17}}"#, .queries(QueryLogRequest(from: 17))),
            (
                #"{"queries": {"timeLimitSeconds": 60, "from": 0}}"#,
                .queries(QueryLogRequest(from: 0, timeLimit: .seconds(60)))
            ),
            (#"{"flushDNS": {}}"#, .flushDNS(nil)), (#"{"flushDNS": {"name": "."}}"#, .flushDNS(DomainName())),
        ] as [(String, ControlRequest)])
    func aLineIsRead(line: String, expected: ControlRequest) throws {
        #expect(try request(line) == expected)
    }

    @Test func namesAreComparedWithoutCase() throws {
        let name = try DomainName(parsing: "www.example.com")
        #expect(try request(#"{"flushDNS": {"name": "WWW.example.com"}}"#) == .flushDNS(name))
    }

    @Test func noTimeLimitIsTooLong() throws {
        let day = Interval.seconds(86_400)
        #expect(
            try request(#"{"status": {"after": 1, "timeLimitSeconds": 9223372036854775807}}"#)
                == .status(after: 1, timeLimit: day))
        #expect(
            try request(#"{"queries": {"timeLimitSeconds": 86401}}"#) == .queries(QueryLogRequest(timeLimit: day)))
    }

    /// What the tool asks for, as JSON that another reader takes apart.
    @Test func aRequestIsALineOfJSONThatIsUnderstood() throws {
        let odd = try DomainName(parsing: #"a\.b\\\"\000\200.example"#)
        let requests: [(ControlRequest, [String: [String: JSONScalar]])] = [
            (.status(after: nil, timeLimit: .seconds(0)), ["status": [:]]),
            (
                .status(after: UInt64(Int.max), timeLimit: .seconds(60)),
                ["status": ["after": .number(Int.max), "timeLimitSeconds": .number(60)]]
            ),
            (.queries(QueryLogRequest()), ["queries": [:]]),
            (
                .queries(QueryLogRequest(from: 0, timeLimit: .seconds(60))),
                ["queries": ["from": .number(0), "timeLimitSeconds": .number(60)]]
            ),
            (.flushDNS(nil), ["flushDNS": [:]]), (.flushDNS(DomainName()), ["flushDNS": ["name": .text(".")]]),
            (.flushDNS(odd), ["flushDNS": ["name": .text(#"a\.b\\\"\000\200.example."#)]]),
        ]
        for (request, content) in requests {
            let line = request.line
            #expect(line.hasSuffix("\n") && line.filter { $0 == "\n" }.count == 1)
            #expect(line.utf8.count <= ControlRequest.maximumByteCount)
            #expect(
                try JSONDecoder().decode([String: [String: JSONScalar]].self, from: Data(line.utf8)) == content)
            #expect(try self.request(String(line.dropLast())) == request)
        }
    }

    @Test(arguments: [
        "[]", "{}", "null", #""status""#, "1", #"{"status": {}, "more": 1}"#, #"{"flushDNS": {}, "status": {}}"#,
        #"{"status": {}, "status": {}}"#,
    ])
    func aLineWithoutOneRequest(line: String) {
        #expect(throws: ControlRequestError.notOneRequest) { try request(line) }
    }

    @Test(arguments: [
        "", "status", "nonsense", #"{"status": {}"#, #"{"status": {}}x"#, "\u{0}", #"{"status": {"after": 1e400}}"#,
        String(repeating: "[", count: 4_000),
    ])
    func aLineThatIsNoJSON(line: String) {
        do throws(ControlRequestError) {
            let request = try request(line)
            Issue.record("\(request)")
        } catch {
            guard case .notJSON = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test func bytesThatAreNoTextAreNoJSON() {
        let bytes: [UInt8] = [0x7B, 0xFF, 0xFE, 0x7D]
        do throws(ControlRequestError) {
            let request = try ControlRequest(reading: bytes.span.octets)
            Issue.record("\(request)")
        } catch {
            guard case .notJSON(let error) = error, error.problem == .invalidUTF8 else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test(
        arguments: [
            (#"{"Status": {}}"#, .unknownRequest("Status")), (#"{"stop": {}}"#, .unknownRequest("stop")),
            (#"{"status": 1}"#, .notOptions(of: .status)), (#"{"status": []}"#, .notOptions(of: .status)),
            (#"{"queries": 1}"#, .notOptions(of: .queries)), (#"{"flushDNS": "a"}"#, .notOptions(of: .flushDNS)),
            (#"{"status": {"before": 1}}"#, .unknownOption("before", of: .status, known: [.after, .timeLimitSeconds])),
            (#"{"status": {"from": 1}}"#, .unknownOption("from", of: .status, known: [.after, .timeLimitSeconds])),
            (#"{"queries": {"to": 1}}"#, .unknownOption("to", of: .queries, known: [.from, .timeLimitSeconds])),
            (#"{"flushDNS": {"names": "a"}}"#, .unknownOption("names", of: .flushDNS, known: [.name])),
            (#"{"flushDNS": {"name": "a", "x": 1}}"#, .unknownOption("x", of: .flushDNS, known: [.name])),
            (#"{"status": {"after": 1, "after": 1}}"#, .repeatedOption("after", of: .status)),
            (#"{"flushDNS": {"name": 1}}"#, .unusableValue(of: .name, in: .flushDNS, expected: .name)),
            (#"{"flushDNS": {"name": ""}}"#, .unusableValue(of: .name, in: .flushDNS, expected: .name)),
            (#"{"flushDNS": {"name": "a..b"}}"#, .unusableValue(of: .name, in: .flushDNS, expected: .name)),
            (
                #"{"queries": {"timeLimitSeconds": -1}}"#,
                .unusableValue(of: .timeLimitSeconds, in: .queries, expected: .number)
            ),
        ] as [(String, ControlRequestError)])
    func whatIsWrongIsTold(line: String, error: ControlRequestError) {
        #expect(throws: error) { try request(line) }
    }

    @Test(arguments: ["-1", "1.5", #""1""#, "null", "9223372036854775808", "[]"])
    func numbersAreWholeAndNotNegative(value: String) {
        #expect(throws: ControlRequestError.unusableValue(of: .after, in: .status, expected: .number)) {
            try request(#"{"status": {"after": \#(value)}}"#)
        }
        #expect(throws: ControlRequestError.unusableValue(of: .from, in: .queries, expected: .number)) {
            try request(#"{"queries": {"from": \#(value)}}"#)
        }
    }

    @Test(arguments: [
        ("[", "the request is not JSON: expected a value at character 2"),
        ("{}", "expected an object with one request: status, queries, flushDNS"),
        (#"{"stop": {}}"#, #"this request is not known: "stop"; there are status, queries, flushDNS"#),
        (#"{"status": 1}"#, "status: expected an object with its options"),
        (#"{"status": {"x": 1}}"#, #"status: unknown option "x"; there are after, timeLimitSeconds"#),
        (#"{"queries": {"from": 1, "from": 2}}"#, #"queries: "from" is given twice"#),
        (#"{"queries": {"from": -1}}"#, "queries.from: expected a whole number from 0 to 9223372036854775807"),
        (#"{"flushDNS": {"name": 7}}"#, #"flushDNS.name: expected a domain name such as "example.com""#),
    ])
    func errorsSayWhatWasExpected(line: String, text: String) {
        do throws(ControlRequestError) {
            let request = try request(line)
            Issue.record("\(request)")
        } catch {
            #expect(error.description == text)
        }
    }

    @Test func aFailureIsALineOfJSON() throws {
        let line = ControlAnswer.failure("no \"good\"\nat all")
        #expect(line.filter { $0 == "\n" }.count == 1)
        #expect(
            try JSONDecoder().decode([String: String].self, from: Data(line.utf8)) == ["error": "no \"good\"\nat all"])
    }
}

/// The values that options have.
private enum JSONScalar: Decodable, Equatable {
    case number(Int)
    case text(String)

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int.self) {
            self = .number(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }
}
