import EncryptedDNS
import Provider
import Testing

@Suite struct UpstreamConnectionsTests {
    typealias Upstream = UpstreamConnections<String>

    /// A server and what it asked for, with a check of each number being new.
    private final class Host {
        var upstream: Upstream
        var opened: [String] = []
        var closed: [ConnectionID] = []
        var resolutions = 0
        private(set) var ids: [ConnectionID] = []

        init(_ addresses: [String], policy: Upstream.Policy = Upstream.Policy()) {
            upstream = Upstream(addresses: addresses, policy: policy)
        }

        func carryOut(_ actions: [Upstream.Action]) {
            for action in actions {
                switch action {
                case .open(let id, let address):
                    #expect(!ids.contains(id))
                    ids.append(id)
                    opened.append(address)
                case .close(let id): closed.append(id)
                case .resolve: resolutions += 1
                }
            }
        }

        func choose(needsFresh: Bool = false, at now: Double) -> Upstream.Choice {
            var actions: [Upstream.Action] = []
            let choice = upstream.choose(needsFresh: needsFresh, at: seconds(now), actions: &actions)
            carryOut(actions)
            return choice
        }

        /// Opens a connection and says that it is there.
        func connect(at now: Double) throws -> ConnectionID {
            guard case .use(let id) = choose(at: now) else { throw Unexpected() }
            carryOut(upstream.opened(id, at: seconds(now)))
            return id
        }
    }

    private struct Unexpected: Error {}

    @Test func `queries share the first connection, opening or open`() throws {
        let host = Host(["a", "b"])
        let first = host.choose(at: 1)
        #expect(host.choose(at: 1.1) == first)
        #expect(host.opened == ["a"])
        let id = try #require(host.ids.first)
        host.carryOut(host.upstream.opened(id, at: seconds(1.2)))
        #expect(host.choose(at: 2) == .use(id) && host.opened == ["a"] && host.upstream.nextDeadline == nil)
    }

    @Test func `an address that fails is followed by the next, and left alone for longer each time`() throws {
        let host = Host(["a", "b"])
        _ = host.choose(at: 1)
        host.carryOut(host.upstream.failed(host.ids[0], at: seconds(1)))
        #expect(host.opened == ["a", "b"])
        host.carryOut(host.upstream.failed(host.ids[1], at: seconds(1.5)))
        #expect(host.choose(at: 1.6) == .unavailable(until: seconds(2)))
        // The one that was left alone for long enough is tried again; its second failure counts double.
        #expect(host.choose(at: 2) == .use(host.ids[2]) && host.opened.last == "a")
        host.carryOut(host.upstream.failed(host.ids[2], at: seconds(2)))
        #expect(host.choose(at: 2.5) == .use(host.ids[3]) && host.opened.last == "b")
        host.carryOut(host.upstream.failed(host.ids[3], at: seconds(2.5)))
        #expect(host.choose(at: 3.9) == .unavailable(until: seconds(4)))
        // Success forgets what was.
        let id = try host.connect(at: 4)
        #expect(host.opened.last == "a")
        host.carryOut(host.upstream.closed(id, at: seconds(5)))
        #expect(host.opened.last == "a")
        host.carryOut(host.upstream.failed(host.ids[5], at: seconds(5)))
        _ = host.choose(at: 6)
        #expect(host.opened.last == "b")
    }

    @Test func `a server that is not to be trusted is left alone for long`() {
        let host = Host(["a"])
        _ = host.choose(at: 1)
        host.carryOut(host.upstream.failed(host.ids[0], isUntrusted: true, at: seconds(1)))
        #expect(host.choose(at: 30) == .unavailable(until: seconds(31)))
        #expect(host.choose(at: 31) == .use(host.ids[1]))
    }

    @Test func `an address that takes long is raced by the next, and the slower connection is closed`() throws {
        let host = Host(["a", "b"])
        _ = host.choose(at: 1)
        let due = try #require(host.upstream.nextDeadline)
        #expect(due == seconds(1.5))
        host.carryOut(host.upstream.handleDeadlines(at: due))
        #expect(host.opened == ["a", "b"] && host.upstream.nextDeadline.map { $0 > due } ?? true)
        host.carryOut(host.upstream.opened(host.ids[1], at: seconds(1.6)))
        #expect(host.closed == [host.ids[0]] && host.choose(at: 1.7) == .use(host.ids[1]))
        // What is reported about a connection that is gone changes nothing.
        #expect(host.upstream.opened(host.ids[0], at: seconds(2)) == [])
        #expect(host.upstream.failed(host.ids[0], at: seconds(2)) == [])
    }

    @Test func `a connection that takes no more is replaced, and the oldest such one gives way`() throws {
        var policy = Upstream.Policy()
        policy.connectionCount = 2
        let host = Host(["a"], policy: policy)
        let first = try host.connect(at: 1)
        host.upstream.changed(first, canTakeMore: false)
        let second = try host.connect(at: 2)
        #expect(second != first && host.closed.isEmpty)
        // The first one takes some again, and it is older.
        host.upstream.changed(first, canTakeMore: true)
        #expect(host.choose(at: 3) == .use(first))
        host.upstream.changed(first, canTakeMore: false)
        host.upstream.changed(second, canTakeMore: false)
        let third = try host.connect(at: 4)
        #expect(host.closed == [first])
        // A query that has failed on one connection goes by another; with no room for a fresh one, by the newest.
        host.upstream.changed(second, canTakeMore: true)
        #expect(host.choose(needsFresh: true, at: 5) == .use(third) && host.closed == [first])
    }

    @Test func `a connection with enough under way is joined by others, and never gives way`() throws {
        let host = Host(["a"])
        let ids = try (1...3).map { number in
            let id = try host.connect(at: Double(number))
            host.upstream.changed(id, canTakeMore: false, isBusy: true)
            return id
        }
        #expect(host.choose(at: 4) == .full && host.closed.isEmpty && host.opened.count == 3)
        host.upstream.changed(ids[0], canTakeMore: true)
        host.upstream.changed(ids[1], canTakeMore: true)
        // Who needs a fresh one and can have none gets the newest.
        #expect(host.choose(needsFresh: true, at: 4.5) == .use(ids[1]) && host.closed.isEmpty)
        host.upstream.changed(ids[0], canTakeMore: false, isBusy: true)
        #expect(host.choose(at: 5) == .use(ids[1]) && host.closed.isEmpty)
        // One of them is found to be silent.
        host.upstream.changed(ids[1], canTakeMore: false, isBusy: true)
        host.upstream.changed(ids[2], canTakeMore: false)
        #expect(host.choose(at: 6) != .full && host.closed == [ids[2]])
    }

    @Test func `a warm connection replaces the last one for as long as the server is used`() throws {
        let host = Host(["a"])
        let first = try host.connect(at: 1)
        host.carryOut(host.upstream.closed(first, at: seconds(100)))
        #expect(host.opened == ["a", "a"])
        host.carryOut(host.upstream.opened(host.ids[1], at: seconds(100)))
        #expect(host.choose(at: 101) == .use(host.ids[1]))
        host.carryOut(host.upstream.closed(host.ids[1], at: seconds(102)))
        #expect(host.opened == ["a", "a", "a"])
        // It was warm for nothing: a server that closes at once is not called without end.
        host.carryOut(host.upstream.opened(host.ids[2], at: seconds(102)))
        host.carryOut(host.upstream.closed(host.ids[2], at: seconds(102)))
        #expect(host.opened.count == 3 && host.upstream.connectionIDs.isEmpty)
        let last = try host.connect(at: 200)
        host.carryOut(host.upstream.closed(last, at: seconds(501)))
        #expect(host.opened.count == 4 && host.upstream.connectionIDs.isEmpty)
    }

    @Test func `another path drops everything, and forgets failures`() throws {
        let host = Host(["a", "b"])
        _ = host.choose(at: 1)
        host.carryOut(host.upstream.failed(host.ids[0], at: seconds(1)))
        host.carryOut(host.upstream.opened(host.ids[1], at: seconds(1)))
        host.carryOut(host.upstream.pathChanged(at: seconds(2)))
        #expect(host.closed == [host.ids[1]] && host.opened == ["a", "b", "a"])
        #expect(host.choose(at: 2) == .use(host.ids[2]))
    }

    @Test func `addresses are resolved when needed, when too old, and when none works`() throws {
        let host = Host([])
        #expect(host.choose(at: 1) == .waitForAddresses && host.choose(at: 1) == .waitForAddresses)
        #expect(host.resolutions == 1)
        host.carryOut(host.upstream.resolutionFailed(at: seconds(2)))
        #expect(host.choose(at: 3) == .unavailable(until: seconds(7)) && host.resolutions == 1)
        #expect(host.choose(at: 7) == .waitForAddresses && host.resolutions == 2)
        host.carryOut(host.upstream.resolved(["a", "b", "a"], validFor: .seconds(60), at: seconds(8)))
        #expect(host.opened == ["a"])
        host.carryOut(host.upstream.opened(host.ids[0], at: seconds(8)))
        #expect(host.choose(at: 8.5) == .use(host.ids[0]))
        host.carryOut(host.upstream.closed(host.ids[0], at: seconds(9)))
        #expect(host.opened == ["a", "a"] && host.resolutions == 2)
        host.carryOut(host.upstream.failed(host.ids[1], at: seconds(10)))
        host.carryOut(host.upstream.failed(host.ids[2], at: seconds(10)))
        #expect(host.opened == ["a", "a", "b"] && host.resolutions == 3)
        // What is known is used while the resolver is asked, and new addresses take its place.
        #expect(host.choose(at: 11) == .use(host.ids[3]))
        host.carryOut(host.upstream.resolved(["c"], validFor: .seconds(0), at: seconds(11)))
        host.carryOut(host.upstream.failed(host.ids[3], at: seconds(11)))
        #expect(host.opened.last == "c")
        // Answers that nobody asked for are none.
        #expect(host.upstream.resolved(["d"], validFor: .seconds(9), at: seconds(12)) == [])
    }
}
