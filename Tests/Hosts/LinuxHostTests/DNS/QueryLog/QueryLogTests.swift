import ByteAccess
import DNSMessage
import DNSProxy
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct QueryLogTests {
    /// A log with queries for names, of which the first label is a number.
    private func log(
        _ detail: DNSConfiguration.QueryLog, count: Int = 0, name: (Int) -> String = { "\($0).example" }
    ) -> QueryLog {
        var log = QueryLog()
        log.set(detail)
        for number in 0..<count { note(&log, name(number), number) }
        return log
    }

    private func note(_ log: inout QueryLog, _ name: String, _ number: Int = 0) {
        var entry = QueryLogEntry()
        entry.client = address("192.0.2.\(number % 256)")
        entry.code = ResponseCode(rawValue: UInt16(number % 16))
        log.note(ClientWire.query(id: 1, name, type: 28).span.octets, entry)
    }

    private func wire(_ name: String) -> [UInt8] {
        name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    @Test func nothingIsKeptWhileItIsOff() {
        let log = log(.off, count: 3)
        #expect(log.end == 0 && log.byteCount == 0 && !log.isOn)
        let excerpt = log.excerpt(from: nil, limit: 10)
        #expect(excerpt.queries.isEmpty && excerpt.next == 0 && excerpt.detail == .off)
    }

    @Test func namesAndClientsAreKeptOnlyWhenTheyMayBeShown() {
        let full = log(.full, count: 2).excerpt(from: nil, limit: 10)
        #expect(full.queries.map(\.name) == [wire("0.example"), wire("1.example")])
        #expect(full.queries.map(\.entry.client) == [address("192.0.2.0"), address("192.0.2.1")])
        #expect(full.queries.map(\.entry.type) == [.aaaa, .aaaa])
        let hidden = log(.private, count: 2).excerpt(from: nil, limit: 10)
        #expect(hidden.queries.map(\.name) == [[], []])
        #expect(hidden.queries.map(\.entry.client) == [nil, nil])
        #expect(hidden.queries.map(\.entry.type) == [.aaaa, .aaaa])
    }

    @Test func whatIsNoQuestionHasNeitherNameNorType() {
        var log = log(.full)
        let header: [UInt8] = [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        let long = Array(repeating: [UInt8(63)] + [UInt8](repeating: 97, count: 63), count: 5).flatMap(\.self)
        for rest in [[], [0], [0, 0], [3, 97], [0xC0, 12, 0, 1], [64], long + [0, 0, 1, 0, 1]] as [[UInt8]] {
            log.note((header + rest).span.octets, QueryLogEntry())
        }
        log.note(Array(header[..<5]).span.octets, QueryLogEntry())
        log.note((header + [0, 0, 2]).span.octets, QueryLogEntry())
        let queries = log.excerpt(from: nil, limit: 20).queries
        #expect(queries.map(\.entry.type) == Array(repeating: nil, count: 8) + [.ns])
        #expect(queries.map(\.name) == Array(repeating: [], count: 8) + [[0]])
    }

    @Test(arguments: [DNSConfiguration.QueryLog.private, .full])
    func itsMemoryIsFixedAndTheOldestGoFirst(detail: DNSConfiguration.QueryLog) {
        var log = log(detail)
        let before = log.byteCount
        #expect(before > 0 && before <= 131_072)
        let count = 3 * QueryLog.capacity + 7
        for number in 0..<count { note(&log, "\(number).example", number) }
        #expect(log.byteCount == before)
        let excerpt = log.excerpt(from: nil, limit: .max >> 1)
        #expect(excerpt.queries.count == QueryLog.capacity && excerpt.next == UInt64(count))
        let codes = (count - QueryLog.capacity..<count).map { UInt16($0 % 16) }
        #expect(excerpt.queries.map(\.entry.code.rawValue) == codes)
        if detail == .full {
            #expect(excerpt.queries.map(\.name) == (count - QueryLog.capacity..<count).map { wire("\($0).example") })
        }
    }

    @Test func longNamesLeaveRoomForFewerQueriesAndAllAreWhole() {
        let label = String(repeating: "a", count: 60)
        let names = (100..<1_000).map { "\($0).\(label).\(label).\(label).\(label.dropLast(3))" }
        let log = log(.full, count: names.count) { names[$0] }
        let queries = log.excerpt(from: nil, limit: 1_000).queries
        let length = wire(names[0]).count
        #expect(queries.count == QueryLog.nameCapacity / length)
        #expect(queries.map(\.name) == names.suffix(queries.count).map(wire))
    }

    @Test func whoFollowsIsToldWhatIsLost() {
        var log = log(.private, count: 10)
        var excerpt = log.excerpt(from: 4, limit: 3)
        #expect((excerpt.queries.count, excerpt.next, excerpt.hasMore, excerpt.lostCount) == (3, 7, true, 0))
        excerpt = log.excerpt(from: 7, limit: 3)
        #expect((excerpt.queries.count, excerpt.next, excerpt.hasMore) == (3, 10, false))
        excerpt = log.excerpt(from: 10, limit: 3)
        #expect((excerpt.queries.count, excerpt.next, excerpt.hasMore, excerpt.lostCount) == (0, 10, false, 0))
        for _ in 0..<QueryLog.capacity + 5 { note(&log, "x") }
        excerpt = log.excerpt(from: 10, limit: 3)
        #expect((excerpt.queries.count, excerpt.next, excerpt.hasMore, excerpt.lostCount) == (3, 18, true, 5))
        // A number of another run.
        excerpt = log.excerpt(from: 1 << 40, limit: 3)
        #expect((excerpt.next, excerpt.lostCount) == (log.start + 3, 0))
    }

    @Test func whatWasKeptAnotherWayIsForgotten() {
        var log = log(.full, count: 10)
        log.set(.full)
        #expect(log.excerpt(from: nil, limit: 20).queries.count == 10)
        log.set(.private)
        #expect(log.excerpt(from: nil, limit: 20).queries.isEmpty && log.end == 10)
        note(&log, "x")
        #expect(log.excerpt(from: 10, limit: 20).queries.count == 1)
        log.set(.off)
        #expect(log.byteCount == 0)
    }

    @Test func serversOfAnotherConfigurationAreForgotten() {
        var log = log(.private)
        var entry = QueryLogEntry()
        entry.upstream = UpstreamID(index: 1)
        log.note(ClientWire.query(id: 1, "a").span.octets, entry)
        #expect(log.excerpt(from: nil, limit: 1).queries.first?.entry.upstream == UpstreamID(index: 1))
        log.forgetUpstreams()
        #expect(log.excerpt(from: nil, limit: 1).queries.first?.entry.upstream == nil)
    }
}
