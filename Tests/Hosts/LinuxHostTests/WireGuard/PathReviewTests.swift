import Glibc
import OpenSSLCrypto
import Provider
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct PathReviewTests {
    /// Waits until an instant by the clock that deadlines are of.
    private func wait(until deadline: Instant) throws {
        var loop = try EventLoop()
        var events = EventBuffer(capacity: 1)
        try loop.wait(until: deadline, into: &events)
    }

    @Test func looksAgainAfterAChangeAndLaterOnceMore() throws {
        try inNewNetworkNamespace {
            let shared = try SharedDevice(
                Device(cryptography: OpenSSLCryptography(), entropy: SystemRandomNumberGenerator()))
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            var review = PathReview(try channel.openNetlink())
            review.readChanges()
            let quiet = review.deadline
            #expect(quiet == nil)

            try run("ip", "addr", "add", "192.0.2.1/32", "dev", "lo")
            let before = HostClock.now()
            review.readChanges()
            let first = try deadline(of: review)
            #expect(first > before)
            // Before its time nothing is done.
            review.look(at: shared)
            let untouched = try deadline(of: review) == first
            #expect(untouched || HostClock.now() >= first)
            try wait(until: first)
            review.look(at: shared)
            let second = try deadline(of: review)
            #expect(second > first)

            // A change in between begins anew, and what comes with it does not put the look off.
            try run("ip", "addr", "add", "192.0.2.2/32", "dev", "lo")
            review.readChanges()
            let third = try deadline(of: review)
            try run("ip", "addr", "add", "192.0.2.3/32", "dev", "lo")
            review.readChanges()
            let fourth = try deadline(of: review)
            #expect(fourth == third)
        }
    }

    private func deadline(of review: borrowing PathReview) throws -> Instant {
        let deadline = review.deadline
        return try #require(deadline)
    }
}
