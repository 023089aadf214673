import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

/// A machine with an interface of MTU 1,400 that has the default routes, and a route through it with an MTU of its own.
@Suite struct MTUDerivationTests {
    private func mtu(
        _ addresses: [String], included: [String] = [], explicit: Int? = nil, overhead: Int = 80, to endpoints: [String]
    ) throws -> Int {
        try withTunnel("slt-mtu") { _, settings, _ in
            try withLinkedNamespace(localAddresses: ["10.6.0.1/24", "fd00:6::1/64"], remoteAddresses: []) { _ in
                try run("ip", "link", "set", "slt-near", "mtu", "1400")
                try run("ip", "route", "add", "default", "via", "10.6.0.2")
                try run("ip", "-6", "route", "add", "default", "via", "fd00:6::2")
                try run("ip", "route", "add", "192.0.2.0/24", "via", "10.6.0.2", "mtu", "1300")
                try run("ip", "-6", "route", "add", "2001:db8::/32", "via", "fd00:6::2", "mtu", "1350")
                var value = try tunnelSettings(addresses, included: included, mtu: explicit)
                value.tunnelOverheadBytes = overhead
                let applied = try settings.apply(
                    value, routing: RoutingOptions(endpoints: endpoints.map { address($0) }))
                let shown = try output(of: "ip", "-o", "link", "show", "slt-mtu")
                #expect(shown.contains(" mtu \(applied.maximumTransmissionUnit) "))
                // Once more, now that the tunnel has the routes: it must not measure itself.
                let again = try settings.apply(
                    value, routing: RoutingOptions(endpoints: endpoints.map { address($0) }))
                #expect(again.maximumTransmissionUnit == applied.maximumTransmissionUnit)
                _ = settings.clear()
                return applied.maximumTransmissionUnit
            }
        }
    }

    @Test func itIsThatOfTheNarrowestWayLessTheOverhead() throws {
        #expect(try mtu(["10.8.0.2/24"], to: ["203.0.113.1"]) == 1_320)
        #expect(try mtu(["10.8.0.2/24"], to: ["203.0.113.1", "192.0.2.1"]) == 1_220)
        #expect(try mtu(["10.8.0.2/24"], to: ["2001:db8::1"]) == 1_270)
        #expect(try mtu(["10.8.0.2/24"], overhead: 60, to: ["192.0.2.1"]) == 1_240)
        #expect(try mtu(["10.8.0.2/24"], included: ["0.0.0.0/0", "::/0"], to: ["192.0.2.1"]) == 1_280)
    }

    @Test func withoutEndpointsItIsThatOfTheDefaultRoute() throws {
        #expect(try mtu(["10.8.0.2/24"], included: ["0.0.0.0/0"], to: []) == 1_320)
    }

    @Test func ipv6HasItsLeast() throws {
        #expect(try mtu(["10.8.0.2/24", "fd00:8::2/64"], to: ["192.0.2.1"]) == 1_280)
        #expect(try mtu(["fd00:8::2/64"], explicit: 1_000, to: []) == 1_280)
    }

    @Test func whatIsGivenWins() throws {
        #expect(try mtu(["10.8.0.2/24"], explicit: 1_000, to: ["192.0.2.1"]) == 1_000)
        #expect(try mtu(["10.8.0.2/24"], explicit: 9_000, to: ["192.0.2.1"]) == 9_000)
    }

    @Test func withoutAnyRouteItIsThatOfAnEthernet() throws {
        try withTunnel("slt-mtu") { _, settings, _ in
            let applied = try settings.apply(
                tunnelSettings(["10.8.0.2/24"]), routing: RoutingOptions(endpoints: [address("192.0.2.1")]))
            #expect(applied.maximumTransmissionUnit == 1_420)
            _ = settings.clear()
        }
    }
}
