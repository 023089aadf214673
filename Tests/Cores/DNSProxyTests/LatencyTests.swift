import DNSMessage
import DNSProxy
import Provider
import Testing

@Suite("How long servers take")
struct LatencyTests {
    private let found = record(.a, address(192, 0, 2, 1))

    /// Puts a query, and has its answer come after so many microseconds.
    private func ask(_ rig: inout Rig, after microseconds: UInt64) throws {
        let client = try rig.ask(query("n\(rig.begun.count).example")).client
        rig.pass(Interval(nanoseconds: microseconds * 1000))
        rig.deliver(reply(to: try #require(rig.open.first?.query), [found]), at: 0)
        #expect(try rig.answer(of: client).code == .noError)
    }

    @Test("Each answer is counted in the range of its time, whose upper bound belongs to it")
    func histogram() throws {
        var rig = try Rig()
        let cases: [(microseconds: UInt64, place: Int)] = [
            (0, 0), (1_000, 0), (1_001, 1), (2_000, 1), (4_999, 2), (10_000, 3), (10_001, 4), (900_000, 9),
        ]
        var expected = [UInt64](repeating: 0, count: 13)
        for (microseconds, place) in cases {
            try ask(&rig, after: microseconds)
            expected[place] += 1
        }
        let latency = rig.provider.status(at: rig.now).upstreams[0].latency
        #expect(LatencyHistogram.bounds == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
        #expect(latency.counts == expected)
        #expect(latency.count == 8 && latency.sum == .milliseconds(929).advanced(byMicroseconds: 1))
        var longest = LatencyHistogram()
        longest.note(.seconds(6))
        #expect(longest.counts.last == 1)
    }

    @Test("Times are smoothed as RFC 6298 says: the first as it is, each further one by an eighth")
    func smoothed() throws {
        var rig = try Rig()
        #expect(rig.provider.status(at: rig.now).upstreams[0].roundTripTime == nil)
        try ask(&rig, after: 8_000)
        #expect(rig.provider.status(at: rig.now).upstreams[0].roundTripTime == .milliseconds(8))
        try ask(&rig, after: 16_000)
        #expect(rig.provider.status(at: rig.now).upstreams[0].roundTripTime == .milliseconds(9))
        try ask(&rig, after: 1_000)
        #expect(rig.provider.status(at: rig.now).upstreams[0].roundTripTime == .milliseconds(8))
    }

    @Test("What is no use to clients is an answer in time all the same, and what never comes is none")
    func refusalsAndSilence() throws {
        var rig = try Rig()
        let (_, sent) = try rig.forward(query("example.com"))
        rig.pass(.milliseconds(3))
        rig.deliver(reply(to: sent, flags: 0x8185))
        _ = try rig.ask(query("silent.example")).client
        rig.pass(.seconds(5))
        let status = rig.provider.status(at: rig.now).upstreams[0]
        #expect(status.answers == 1 && status.latency.count == 1 && status.failures > 0)
        #expect(status.latency.counts[2] == 1)
    }
}

extension Interval {
    fileprivate func advanced(byMicroseconds microseconds: UInt64) -> Interval {
        Interval(nanoseconds: nanoseconds + microseconds * 1000)
    }
}
