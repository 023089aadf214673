import CLinux
import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct PathObserverTests {
    /// Runs `body` with an observer in a namespace of its own that has a veth link, `slt-near`, and a TUN device, `slt-own`.
    private func withObserver(_ body: (inout PathObserver) throws -> Void) throws {
        try inNewNetworkNamespace {
            try withLinkedNamespace(
                localAddresses: ["192.0.2.1/24", "2001:db8::1/64"], remoteAddresses: ["192.0.2.2/24", "2001:db8::2/64"]
            ) { _ in
                var channel = InProcessPrivilegedChannel(PrivilegedService())
                let device = try channel.openTUN(named: interfaceName("slt-own"), maximumTransmissionUnit: 1_420)
                try run("ip", "addr", "add", "10.8.0.2/24", "dev", "slt-own")
                try run("ip", "link", "set", "slt-own", "up")
                var observer = PathObserver(try channel.openNetlink())
                try body(&observer)
                _ = device.identifier
            }
        }
    }

    private func path(_ observer: borrowing PathObserver, _ endpoints: String...) -> NetworkPath {
        observer.path(to: endpoints.map { address($0) }, mark: 0, own: interfaceIndex("slt-own"))
    }

    private func deadline(of observer: borrowing PathObserver) throws -> Instant {
        let deadline = observer.deadline
        return try #require(deadline)
    }

    @Test func withoutADefaultRouteWhatIsNearIsReached() throws {
        try withObserver { observer in
            let near = path(observer, "192.0.2.9")
            #expect(near.interfaceName == "slt-near")
            #expect(near.interfaceIndex == interfaceIndex("slt-near"))
            #expect(Set(near.addresses).isSuperset(of: [address("192.0.2.1"), address("2001:db8::1")]))
            #expect(near.gateways == [])
            #expect(near.supportsIPv4)
            #expect(!near.supportsIPv6)
            #expect(path(observer, "198.51.100.1") == .none)
            // Who waits for others to call needs no way to anywhere.
            #expect(path(observer).status == .satisfied)
        }
    }

    @Test func aDefaultRouteComesAndGoes() throws {
        try withObserver { observer in
            try run("ip", "route", "add", "default", "via", "192.0.2.2")
            var found = path(observer, "198.51.100.1")
            #expect(found.status == .satisfied)
            #expect(found.interfaceName == "slt-near")
            #expect(found.gateways == [address("192.0.2.2")])
            #expect((found.supportsIPv4, found.supportsIPv6) == (true, false))
            #expect(path(observer) == found)
            try run("ip", "-6", "route", "add", "default", "via", "2001:db8::2")
            found = path(observer, "198.51.100.1")
            #expect(found.gateways == [address("192.0.2.2"), address("2001:db8::2")])
            #expect((found.supportsIPv4, found.supportsIPv6) == (true, true))
            try run("ip", "route", "del", "default")
            #expect(path(observer, "198.51.100.1") == .none)
            found = path(observer)
            #expect((found.supportsIPv4, found.supportsIPv6) == (false, true))
        }
    }

    @Test func theBestOfTwoDefaultRoutesDecides() throws {
        try withObserver { observer in
            try run("ip", "tuntap", "add", "slt-other", "mode", "tun")
            try run("ip", "addr", "add", "203.0.113.1/24", "dev", "slt-other")
            try run("ip", "link", "set", "slt-other", "up")
            try run("ip", "route", "add", "default", "via", "192.0.2.2", "metric", "100")
            try run("ip", "route", "add", "default", "dev", "slt-other", "metric", "200")
            #expect(path(observer).interfaceName == "slt-near")
            #expect(path(observer, "198.51.100.1").interfaceName == "slt-near")
            let before = path(observer)
            try run("ip", "route", "del", "default", "metric", "200")
            try run("ip", "route", "add", "default", "dev", "slt-other", "metric", "50")
            #expect(path(observer).interfaceName == "slt-other")
            #expect(path(observer, "198.51.100.1").interfaceName == "slt-other")
            #expect(path(observer) != before)
            #expect(path(observer).addresses == [address("203.0.113.1")])
            #expect(path(observer).gateways == [])
        }
    }

    @Test func anAddressMakesAnotherPath() throws {
        try withObserver { observer in
            try run("ip", "route", "add", "default", "via", "192.0.2.2")
            let before = path(observer, "198.51.100.1")
            try run("ip", "addr", "add", "192.0.2.77/24", "dev", "slt-near")
            let after = path(observer, "198.51.100.1")
            #expect(before != after)
            #expect(after.addresses.contains(address("192.0.2.77")))
            try run("ip", "addr", "del", "192.0.2.77/24", "dev", "slt-near")
            #expect(path(observer, "198.51.100.1") == before)
        }
    }

    @Test func theTunnelItselfIsNoWay() throws {
        try withObserver { observer in
            try run("ip", "route", "add", "default", "dev", "slt-own")
            #expect(path(observer, "198.51.100.1") == .none)
            #expect(path(observer).interfaceIndex == 0)
            // Somebody else's tunnel is one.
            let foreign = observer.path(to: [address("198.51.100.1")], mark: 0, own: 0)
            #expect(foreign.interfaceName == "slt-own")
        }
    }

    @Test func changesAreReadAndCountOnce() throws {
        try withObserver { observer in
            observer.readChanges()
            _ = observer.isDue(at: HostClock.now() + .seconds(10))
            let quiet = observer.deadline
            #expect(quiet == nil)
            try run("ip", "route", "add", "default", "via", "192.0.2.2")
            let now = HostClock.now()
            observer.readChanges(at: now)
            let deadline = try deadline(of: observer)
            #expect(deadline > now)
            #expect(deadline <= now + .seconds(1))
            let isEarly = observer.isDue(at: Instant(nanoseconds: deadline.nanoseconds - 1))
            #expect(!isEarly)
            let isDue = observer.isDue(at: deadline)
            #expect(isDue)
            let isDueAgain = observer.isDue(at: deadline + .seconds(1))
            #expect(!isDueAgain)
            let after = observer.deadline
            #expect(after == nil)
        }
    }

    @Test func aFloodOfChangesPutsTheLookOffForASecondAtMost() throws {
        try withObserver { observer in
            let start = HostClock.now()
            var latest = start
            for step in 0..<200 as Range<UInt64> {
                observer.expectChange(at: start + .milliseconds(step * 10))
                let deadline = try deadline(of: observer)
                #expect(deadline <= start + .seconds(1))
                #expect(deadline >= latest)
                latest = deadline
            }
            #expect(latest == start + .seconds(1))
            // After the look a new second begins.
            let isDue = observer.isDue(at: start + .seconds(2))
            #expect(isDue)
            observer.expectChange(at: start + .seconds(2))
            let next = try deadline(of: observer)
            #expect(next > start + .seconds(2))
        }
    }
}
