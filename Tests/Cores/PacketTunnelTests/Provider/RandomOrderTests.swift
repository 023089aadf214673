import PacketTunnel
import Provider
import Testing

@Suite("Any order of events")
struct RandomOrderTests {
    /// Starts, stops, reloads, answers right, wrong, late and never, paths, sleeps, handshakes and messages in random order.
    /// The random host checks at every step what a provider promises.
    @Test("10,000 random sequences break no promise", arguments: 0..<20 as Range<UInt64>)
    func everything(part: UInt64) {
        for number in 0..<500 as Range<UInt64> {
            var host = RandomHost(seed: part * 500 + number)
            for _ in 0..<40 { host.step() }
            host.end()
            #expect(host.broken.isEmpty, "seed \(part * 500 + number)")
        }
    }

    @Test("Each long poll is answered exactly once in 10,000 random orders of events, leavers and stops")
    func longPolls() {
        var replies = 0
        for seed in 0..<10_000 as Range<UInt64> {
            var host = RandomHost(seed: 1_000_000 + seed)
            for _ in 0..<20 { host.step(onlyLifecycleAndMessages: true) }
            host.end()
            #expect(host.broken.isEmpty, "seed \(1_000_000 + seed)")
            replies += host.repliesSeen
        }
        #expect(replies > 10_000)
    }

    @Test("Equal seeds give equal statuses")
    func determinism() {
        func statuses(_ seed: UInt64) -> [String] {
            var host = RandomHost(seed: seed)
            return (0..<300).map { _ in
                host.step()
                return "\(host.rig.status) \(host.rig.provider.currentStatus.revision) \(host.rig.now.nanoseconds)"
            }
        }
        #expect(statuses(5) == statuses(5))
        #expect(statuses(5) != statuses(6))
    }
}
