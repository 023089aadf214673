import DNSMessage
import DNSProxy
import Provider
import TestSupport
import Testing

@Suite("Results and reports of queries")
struct ReportTests {
    private let found = record(.a, ttl: 60, address(192, 0, 2, 1))

    /// What became of the last query that was answered at once.
    private func last(_ rig: borrowing Rig) -> QueryResult { rig.provider.lastResult }

    private func results(_ rig: borrowing Rig) -> QueryResultCounts { rig.provider.status(at: rig.now).results }

    @Test("What is answered at once has the result that it is answered by")
    func atOnce() throws {
        var rig = try Rig(.plain.with(rules: "||ads.example^").with { $0.maximumLookups = 1 })
        try rig.resolve(query("example.com"), [found])
        let expected: [([UInt8], QueryResult)] = [
            (query("example.com"), .cached), (query("ads.example"), .blocked), (query("localhost"), .local),
            (query("example.com", .axfr), .refused),
            ([0xAB, 0xCD, 1, 0, 0, 2] + [UInt8](repeating: 0, count: 6), .refused),
        ]
        for (query, result) in expected {
            _ = try rig.ask(query).answer
            #expect(last(rig) == result)
        }
        _ = try rig.ask(query("a.example")).client
        _ = try rig.ask(query("b.example")).answer
        #expect(last(rig) == .overloaded && rig.provider.lastError == .notReady)
        rig.fail(.unreachable)
        _ = try rig.ask(query("a.example")).answer
        #expect(last(rig) == .failed && rig.provider.lastError == .cachedError)
    }

    @Test("What is kept and blocked by a rule that came later counts as blocked, once")
    func blockedFromTheCache() throws {
        var rig = try Rig()
        let target = record(.a, owner: "ads.example", ttl: 60, address(192, 0, 2, 1))
        try rig.resolve(query("example.com"), [record(.cname, ttl: 60, wire("ads.example")), target])
        try rig.provider.reload(.plain.with(rules: "||ads.example^"), at: rig.now)
        _ = try rig.ask(query("example.com")).answer
        #expect(last(rig) == .blocked && rig.provider.lastRuleSource == .inline)
        #expect(results(rig)[.udp, .blocked] == 1 && results(rig)[.udp, .cached] == 0)
    }

    @Test("Each answer to one who waited is reported: when it came, by what, from whom, and whether it joined another")
    func forwarded() throws {
        var rig = try Rig()
        rig.provider.reportsAnswers = true
        let began = rig.now
        let client = try rig.ask(query("Example.com", .aaaa)).client
        rig.pass(.milliseconds(40))
        let other = try rig.ask(query("example.com", .aaaa, id: 7), by: .tcp).client
        rig.deliver(reply(to: rig.open[0].query, [record(.aaaa, [UInt8](repeating: 0x20, count: 16))]))
        let reports = rig.provider.takeReports()
        #expect(reports.map(\.client.rawValue) == [client, other])
        #expect(reports.map(\.result) == [.forwarded, .forwarded])
        #expect(reports.map(\.transport) == [.udp, .tcp])
        #expect(reports.map(\.isMerged) == [false, true])
        #expect(reports.map(\.arrivedAt) == [began, began + .milliseconds(40)])
        #expect(reports.map(\.upstream) == [UpstreamID(index: 0), UpstreamID(index: 0)])
        #expect(reports.map(\.responseCode) == [.noError, .noError] && reports.allSatisfy { $0.error == nil })
        #expect(Array(reports[0].query[12...]) == Array(query("Example.com", .aaaa)[12...]))
        #expect(rig.provider.takeReports().isEmpty)
        #expect(results(rig)[.udp, .forwarded] == 1 && results(rig)[.tcp, .forwarded] == 1)
    }

    @Test("Nothing is reported unless somebody wants it")
    func unreported() throws {
        var rig = try Rig()
        try rig.resolve(query("example.com"), [found])
        #expect(rig.provider.takeReports().isEmpty)
        #expect(results(rig)[.udp, .forwarded] == 1)
    }

    @Test("A failure is reported with its reason and the server that was asked last")
    func failed() throws {
        var rig = try Rig(.servers(.udp, .udp))
        rig.provider.reportsAnswers = true
        _ = try rig.ask(query("example.com")).client
        rig.fail(.unreachable)
        rig.fail(.unreachable)
        let reports = rig.provider.takeReports()
        #expect(reports.map(\.result) == [.failed] && reports.map(\.responseCode) == [.serverFailure])
        #expect(reports.map(\.upstream) == [UpstreamID(index: 1)])
        #expect(reports.map(\.error) == [.noReachableAuthority])
    }

    @Test("Answers that lead to the inside, or that are too old, are reported as that")
    func heldBackAndStale() throws {
        var rig = try Rig()
        rig.provider.reportsAnswers = true
        try rig.resolve(query("inside.example"), [record(.a, address(10, 0, 0, 1))])
        #expect(rig.provider.takeReports().map(\.result) == [.rebinding])
        try rig.resolve(query("example.com"), [found])
        _ = rig.provider.takeReports()
        rig.pass(.seconds(60))
        _ = try rig.ask(query("example.com")).client
        rig.fail(.unreachable)
        let reports = rig.provider.takeReports()
        #expect(reports.map(\.result) == [.stale] && reports.map(\.error) == [.noReachableAuthority])
    }

    @Test("Failures of a server are counted by their reasons")
    func failures() throws {
        var rig = try Rig()
        for (number, failure) in [ExchangeFailure.unreachable, .httpStatus(503), .httpStatus(500), .noAddress]
            .enumerated()
        {
            _ = try rig.ask(query("host\(number).example")).client
            rig.fail(failure)
        }
        let status = try #require(rig.provider.status(at: rig.now).upstreams.first)
        var expected = ExchangeFailureCounts()
        (expected.unreachable, expected.httpStatus, expected.noAddress) = (1, 2, 1)
        #expect(status.failureCounts == expected && status.failures == 4)
    }

    @Test("Answers that go for lack of room are counted, and the count stays when the cache is emptied")
    func evictions() throws {
        var rig = try Rig(.plain.with { $0.cacheByteCount = 4_096 })
        for number in 0..<40 { try rig.resolve(query("host\(number).example"), [found]) }
        let status = rig.provider.status(at: rig.now)
        #expect(status.cacheEvictions == UInt64(40 - status.cachedAnswers) && status.cacheEvictions > 0)
        #expect(status.counters.cacheMisses == 40)
        rig.provider.flushCache()
        try rig.provider.reload(.plain, at: rig.now)
        #expect(rig.provider.status(at: rig.now).cacheEvictions == status.cacheEvictions)
    }
}
