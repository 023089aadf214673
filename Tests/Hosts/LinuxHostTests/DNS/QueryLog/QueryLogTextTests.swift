import ByteAccess
import DNSMessage
import DNSProxy
import FoundationEssentials
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct QueryLogTextTests {
    private func excerpt(_ detail: DNSConfiguration.QueryLog) -> QueryLogExcerpt {
        var entry = QueryLogEntry()
        entry.answeredAt = Instant(nanoseconds: 5_000_000_000)
        entry.taken = Interval(nanoseconds: 12_345_678)
        entry.client = address("2001:db8::1")
        (entry.type, entry.transport, entry.result, entry.code) = (.https, .tcp, .failed, .serverFailure)
        (entry.upstream, entry.error, entry.isMerged) = (UpstreamID(index: 1), .noReachableAuthority, true)
        var blocked = QueryLogEntry()
        (blocked.result, blocked.type, blocked.isTunnelled) = (.blocked, RecordType(rawValue: 65_280), true)
        blocked.ruleSource = RuleSource(rawValue: 1)
        var excerpt = QueryLogExcerpt(detail: detail, lostCount: 3, next: 9, hasMore: true)
        excerpt.queries = [(entry, [3, 97, 34, 0x5C, 1, 0xFF, 0]), (blocked, [])]
        (excerpt.upstreamNames, excerpt.ruleSourceNames) = (["main", "corp"], ["rules.inline", "dns.hostsFile"])
        return excerpt
    }

    private func line(_ detail: DNSConfiguration.QueryLog) -> String {
        // A second and a half after the query, by both clocks.
        excerpt(detail).json(
            now: Instant(nanoseconds: 6_500_000_000),
            wallClock: WallClockTime(seconds: 1_796_096_755, nanoseconds: 1_000_000)
        ).text
    }

    @Test func programsGetAnObjectForEachQuery() throws {
        let report = try QueryLogReport(line: line(.full))
        #expect((report.next, report.lostCount, report.hasMore) == (9, 3, true))
        #expect(
            report.jsonLines == [
                #"{"lost":3}"#,
                #"{"time":"2026-12-01T03:45:53.501Z","client":"2001:db8::1","transport":"tcp","tunnel":false,"#
                    + #""name":"a\\\"\\\\.\\255.","type":"HTTPS","result":"failed","rule":null,"upstream":"corp","merged":true,"#
                    + #""code":"SERVFAIL","extendedError":22,"microseconds":12345}"#,
                #"{"time":"2026-12-01T03:45:48.501Z","client":null,"transport":"udp","tunnel":true,"name":null,"#
                    + #""type":"TYPE65280","result":"blocked","rule":"dns.hostsFile","upstream":null,"merged":false,"#
                    + #""code":"NOERROR","extendedError":null,"microseconds":0}"#,
            ])
        for line in report.jsonLines { _ = try JSONDecoder().decode(Line.self, from: Data(line.utf8)) }
    }

    private struct Line: Decodable {
        var name: String?
    }

    @Test func peopleGetALineForEachQuery() throws {
        let report = try QueryLogReport(line: line(.full))
        #expect(
            report.textLines == [
                "3 entries lost",
                #"2026-12-01T03:45:53.501Z tcp 2001:db8::1 a\"\\.\255. HTTPS SERVFAIL failed (EDE 22, corp, merged) 12.3 ms"#,
                "2026-12-01T03:45:48.501Z tunnel - - TYPE65280 NOERROR blocked (dns.hostsFile) 0.0 ms",
            ])
    }

    @Test func namesAndClientsAreHidden() throws {
        let report = try QueryLogReport(line: line(.private))
        #expect(
            report.textLines[1]
                == "2026-12-01T03:45:53.501Z tcp <private> <private> HTTPS SERVFAIL failed (EDE 22, corp, merged) 12.3 ms"
        )
        #expect(report.jsonLines[2].contains(#""client":"<private>""#))
        #expect(report.jsonLines[2].contains(#""name":"<private>""#))
    }

    @Test(arguments: [
        ("{\"error\":\"not now\"}", StatusFailure.refused("not now")), ("[]", .notUnderstood), ("{}", .notUnderstood),
        ("{\"next\":1}", .notUnderstood), ("{\"queries\":[]}", .notUnderstood),
        ("{\"next\":-1,\"queries\":[]}", .notUnderstood),
    ])
    func whatIsNoAnswer(line: String, failure: StatusFailure) {
        #expect(throws: failure) { _ = try QueryLogReport(line: line) }
    }

    @Test func timesAreWrittenAsRFC3339Does() {
        let times: [(UInt64, UInt32, String)] = [
            (0, 0, "1970-01-01T00:00:00.000Z"), (951_782_400, 999_999_999, "2000-02-29T00:00:00.999Z"),
            (4_102_444_799, 5_000_000, "2099-12-31T23:59:59.005Z"),
        ]
        for (seconds, nanoseconds, text) in times {
            #expect(WallClockTime(seconds: seconds, nanoseconds: nanoseconds).text == text)
        }
        let time = WallClockTime(seconds: 10, nanoseconds: 5)
        #expect(time.earlier(by: Interval(nanoseconds: 6)) == WallClockTime(seconds: 9, nanoseconds: 999_999_999))
        #expect(time.earlier(by: .seconds(11)) == WallClockTime(seconds: 0, nanoseconds: 0))
    }
}
