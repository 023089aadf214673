import Testing

@testable import LinuxHost

@Suite struct OffloadsTests {
    @Test(arguments: [
        ("tun,udpSegment,udpGRO", Offloads()), ("none", .none), (" none ", .none),
        ("udpGRO", Offloads(tun: false, udpSegment: false, udpGRO: true)),
        ("udpSegment, tun", Offloads(tun: true, udpSegment: true, udpGRO: false)),
        ("tun,tun", Offloads(tun: true, udpSegment: false, udpGRO: false)),
    ])
    func aListNamesThoseThatAreOn(text: String, offloads: Offloads) throws {
        #expect(try Offloads(parsing: text) == offloads)
    }

    @Test(arguments: [
        ("", Offloads.Invalid.empty), ("tun,", .empty), (" , ", .empty), ("gro", .unknownName("gro")),
        ("tun,none", .unknownName("none")), ("TUN", .unknownName("TUN")), ("tun udpGRO", .unknownName("tun udpGRO")),
    ])
    func anythingElseIsRefused(text: String, error: Offloads.Invalid) {
        #expect(throws: error) { _ = try Offloads(parsing: text) }
    }

    @Test func everyCombinationHasAName() throws {
        for bits in 0..<8 {
            let offloads = Offloads(tun: bits & 1 != 0, udpSegment: bits & 2 != 0, udpGRO: bits & 4 != 0)
            let names = Offloads.names.indices.filter { bits & 1 << $0 != 0 }.map { Offloads.names[$0] }
            #expect(try Offloads(parsing: names.isEmpty ? "none" : names.joined(separator: ",")) == offloads)
        }
    }
}
