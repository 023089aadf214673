import Provider
import Testing

@testable import LinuxHost

@Suite struct QueryWatchersTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func message(_ number: UInt64) -> AppMessageID { AppMessageID(rawValue: number) }

    private func hold(_ watchers: inout QueryWatchers, _ id: UInt64, for number: UInt64, seconds: UInt64) {
        let isHeld = watchers.hold(message(id), for: number, timeLimit: .seconds(seconds), at: start)
        #expect(isHeld)
    }

    private func wasTold(_ news: QueryNews) -> Bool { news.wakeUp.clear() }

    @Test func newsAreGatheredForAMomentAndGivenToEachOnce() throws {
        var watchers = try QueryWatchers()
        hold(&watchers, 1, for: 7, seconds: 60)
        hold(&watchers, 2, for: 8, seconds: 60)
        #expect(watchers.nextDeadline == start + .seconds(60))
        watchers.noteNews(at: start)
        watchers.noteNews(at: start + .milliseconds(49))
        #expect(watchers.nextDeadline == start + QueryWatchers.pause)
        let early = watchers.due(at: start + .milliseconds(49))
        #expect(early.isEmpty)
        let due = watchers.due(at: start + QueryWatchers.pause)
        #expect(due.map(\.id) == [message(1), message(2)] && due.map(\.number) == [7, 8])
        let late = watchers.due(at: start + .seconds(100))
        #expect(late.isEmpty && watchers.nextDeadline == nil)
    }

    @Test func whoWaitsTooLongIsAnswered() throws {
        var watchers = try QueryWatchers()
        hold(&watchers, 1, for: 7, seconds: 2)
        hold(&watchers, 2, for: 7, seconds: 3)
        let due = watchers.due(at: start + .seconds(2))
        #expect(due.map(\.id) == [message(1)])
        watchers.leave(message(2))
        let rest = watchers.all()
        #expect(rest.isEmpty)
    }

    @Test func thereIsABoundToHowManyWait() throws {
        var watchers = try QueryWatchers()
        for number in 0..<UInt64(LongPolls.maximumAskers) { hold(&watchers, number, for: 0, seconds: 9) }
        let isHeld = watchers.hold(message(1_000), for: 0, timeLimit: .seconds(9), at: start)
        #expect(!isHeld)
        let all = watchers.all()
        #expect(all.count == LongPolls.maximumAskers)
    }

    @Test func onlyWhatIsAwaitedIsTold() throws {
        let news = try QueryNews()
        news.tell()
        #expect(!wasTold(news))
        news.await()
        news.tell()
        news.tell()
        #expect(wasTold(news))
        #expect(!wasTold(news))
        news.tell()
        #expect(!wasTold(news))
    }
}
