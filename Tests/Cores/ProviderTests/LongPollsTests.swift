import Provider
import Testing

@Suite("Long polls")
struct LongPollsTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func id(_ number: UInt64) -> AppMessageID { AppMessageID(rawValue: number) }

    @Test("Who is behind, who knows nothing and who has no time is answered at once")
    func atOnce() {
        var polls = LongPolls(revision: 5)
        #expect(polls.ask(id(1), after: 4, timeLimit: .seconds(10), at: start) == .reply)
        #expect(polls.ask(id(2), after: 6, timeLimit: .seconds(10), at: start) == .reply)
        #expect(polls.ask(id(3), after: nil, timeLimit: .seconds(10), at: start) == .reply)
        #expect(polls.ask(id(4), after: 5, timeLimit: .seconds(0), at: start) == .reply)
        #expect(polls.count == 0 && polls.nextDeadline == nil)
    }

    @Test("A change answers all that are held, oldest first, and once")
    func change() {
        var polls = LongPolls(revision: 5)
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(polls.ask(id(number), after: 5, timeLimit: .seconds(10), at: start) == .held)
        }
        #expect(polls.changed() == [id(1), id(2), id(3)])
        #expect(polls.revision == 6)
        #expect(polls.changed() == [])
        #expect(polls.nextDeadline == nil)
    }

    @Test("A time limit is reached at its instant, is no longer than ten minutes, and leaves no deadline behind")
    func timeLimit() {
        var polls = LongPolls()
        #expect(polls.ask(id(1), after: 1, timeLimit: .seconds(3), at: start) == .held)
        #expect(polls.ask(id(2), after: 1, timeLimit: .seconds(86_400), at: start) == .held)
        #expect(polls.nextDeadline == start + .seconds(3))
        #expect(polls.expire(at: start + .milliseconds(2999)) == [])
        #expect(polls.expire(at: start + .seconds(3)) == [id(1)])
        #expect(polls.nextDeadline == start + .seconds(600))
        #expect(polls.expire(at: start + .seconds(9999)) == [id(2)])
        #expect(polls.nextDeadline == nil)
    }

    @Test("Who leaves gets nothing, and 64 are held at most")
    func bounds() {
        var polls = LongPolls()
        for number in 0..<64 as Range<UInt64> {
            #expect(polls.ask(id(number), after: 1, timeLimit: .seconds(3), at: start) == .held)
        }
        #expect(polls.ask(id(64), after: 1, timeLimit: .seconds(3), at: start) == .refuse)
        polls.leave(id(0))
        polls.leave(id(1000))
        #expect(polls.ask(id(65), after: 1, timeLimit: .seconds(3), at: start) == .held)
        let answered = polls.end()
        #expect(answered == (1..<64).map { id($0) } + [id(65)])
    }
}
