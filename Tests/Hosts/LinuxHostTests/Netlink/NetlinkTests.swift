import Glibc
import IPPacket
import Provider
import Testing

@testable import LinuxHost

@Suite struct NetlinkTests {
    @Test func tellsOfLinksAddressesAndRoutesOfBothFamilies() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let netlink = try channel.openNetlink()
            #expect(netlink.isHome == true)
            let device = try channel.openTUN(named: interfaceName("slt-watch"), maximumTransmissionUnit: 1_420)
            let index = interfaceIndex("slt-watch")
            try awaitChange(netlink, "the new link") { change in
                guard case .linkChanged(let link) = change else { return false }
                return link.index == index && link.name == "slt-watch" && !link.isUp
            }
            try run("ip", "link", "set", "slt-watch", "mtu", "1333")
            try awaitChange(netlink, "the MTU") { change in
                guard case .linkChanged(let link) = change else { return false }
                return link.index == index && link.maximumTransmissionUnit == 1_333
            }
            try run("ip", "link", "set", "slt-watch", "up")
            try awaitChange(netlink, "the link up") { change in
                guard case .linkChanged(let link) = change else { return false }
                return link.index == index && link.isUp
            }
            // On a link with another end, the local address is told and not that of the end.
            try run("ip", "addr", "add", "10.3.0.1", "peer", "10.3.0.2", "dev", "slt-watch")
            try awaitChange(netlink, "the IPv4 address") {
                $0 == .addressAdded(address("10.3.0.1"), interfaceIndex: index)
            }
            try run("ip", "addr", "add", "fd00:3::1/64", "dev", "slt-watch", "nodad")
            try awaitChange(netlink, "the IPv6 address") {
                $0 == .addressAdded(address("fd00:3::1"), interfaceIndex: index)
            }
            try drain(netlink)
            try run("ip", "route", "add", "192.0.2.0/24", "dev", "slt-watch")
            try awaitChange(netlink, "the IPv4 route") { $0 == .routesChanged(.v4) }
            try run("ip", "route", "add", "2001:db8::/32", "dev", "slt-watch")
            try awaitChange(netlink, "the IPv6 route") { $0 == .routesChanged(.v6) }
            try drain(netlink)
            try run("ip", "-4", "rule", "add", "fwmark", "5", "table", "100")
            try awaitChange(netlink, "the IPv4 rule") { $0 == .routesChanged(.v4) }
            try run("ip", "-6", "rule", "add", "fwmark", "5", "table", "100")
            try awaitChange(netlink, "the IPv6 rule") { $0 == .routesChanged(.v6) }
            try run("ip", "addr", "del", "10.3.0.1", "peer", "10.3.0.2", "dev", "slt-watch")
            try awaitChange(netlink, "the removed address") {
                $0 == .addressRemoved(address("10.3.0.1"), interfaceIndex: index)
            }
            try run("ip", "link", "delete", "slt-watch")
            try awaitChange(netlink, "the removed link") { $0 == .linkRemoved(index: index) }
            _ = device.identifier
        }
    }

    @Test func aChangeTellsWhatItIsAbout() {
        let link = Link(index: 3, name: "lo", maximumTransmissionUnit: 1_500, isUp: true)
        #expect(NetlinkChange.linkChanged(link).subject == NetlinkSubject(kind: .link, family: nil))
        #expect(NetlinkChange.linkRemoved(index: 3).subject == NetlinkSubject(kind: .link, family: nil))
        #expect(
            NetlinkChange.addressAdded(address("fd00::1"), interfaceIndex: 3).subject
                == NetlinkSubject(kind: .address, family: .v6))
        #expect(
            NetlinkChange.addressRemoved(address("192.0.2.1"), interfaceIndex: 3).subject
                == NetlinkSubject(kind: .address, family: .v4))
        #expect(NetlinkChange.routesChanged(.v6).subject == NetlinkSubject(kind: .route, family: .v6))
        #expect(NetlinkChange.everythingMayHaveChanged.subject == nil)
    }

    @Test func aPortThatLeavesABridgeIsNoRemovedLink() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            try run("ip", "link", "add", "slt-bridge", "type", "bridge")
            try run("ip", "link", "add", "slt-port", "type", "veth", "peer", "name", "slt-peer")
            try run("ip", "link", "set", "slt-port", "master", "slt-bridge")
            let netlink = try channel.openNetlink()
            let index = interfaceIndex("slt-port")
            try run("ip", "link", "set", "slt-port", "nomaster")
            // Something that comes after whatever the bridge tells.
            try run("ip", "link", "set", "slt-port", "mtu", "1400")
            try awaitChange(netlink, "the MTU") { change in
                #expect(change != .linkRemoved(index: index))
                guard case .linkChanged(let link) = change else { return false }
                return link.index == index && link.maximumTransmissionUnit == 1_400
            }
        }
    }

    @Test func answersQuestionsAboutLinks() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let netlink = try channel.openNetlink()
            let loopback = Link(
                index: interfaceIndex("lo"), name: "lo", maximumTransmissionUnit: 65_536, isUp: true,
                hasPacketInformation: false)
            let byName = try netlink.link(named: interfaceName("lo"))
            let byIndex = try netlink.link(at: loopback.index)
            #expect(byName == loopback)
            #expect(byIndex == loopback)
            #expect(throws: NetlinkError.refused(errno: ENODEV)) {
                try netlink.link(named: interfaceName("slt-absent"))
            }
            #expect(throws: NetlinkError.refused(errno: ENODEV)) { try netlink.link(at: 9_999) }
        }
    }

    @Test func looksUpRoutesBySourceAndMark() throws {
        try inNewNetworkNamespace {
            try withLinkedNamespace(localAddresses: ["10.6.0.1/24", "fd00:6::1/64"], remoteAddresses: []) { _ in
                var channel = InProcessPrivilegedChannel(PrivilegedService())
                let netlink = try channel.openNetlink()
                let near = interfaceIndex("slt-near")
                let direct = try netlink.route(to: address("10.6.0.7"))
                #expect(direct == Route(interfaceIndex: near, preferredSource: address("10.6.0.1")))
                let directV6 = try netlink.route(to: address("fd00:6::7"))
                #expect(directV6.interfaceIndex == near)
                #expect(directV6.preferredSource == address("fd00:6::1"))
                #expect(throws: NetlinkError.refused(errno: ENETUNREACH)) {
                    try netlink.route(to: address("192.0.2.1"))
                }
                #expect(throws: NetlinkError.refused(errno: ENETUNREACH)) {
                    try netlink.route(to: address("2001:db8::1"))
                }

                // With this mark the same destination leaves by a second pair, with an MTU of its own.
                try run("ip", "link", "add", "slt-second", "type", "veth", "peer", "name", "slt-end")
                try run("ip", "addr", "add", "10.8.0.1/24", "dev", "slt-second")
                try run("ip", "link", "set", "slt-second", "up")
                try run("ip", "route", "add", "10.6.0.0/24", "dev", "slt-second", "mtu", "1333", "table", "100")
                try run("ip", "rule", "add", "fwmark", "0x51", "table", "100")
                let marked = try netlink.route(to: address("10.6.0.7"), mark: 0x51)
                #expect(
                    marked
                        == Route(
                            interfaceIndex: interfaceIndex("slt-second"), preferredSource: address("10.8.0.1"),
                            maximumTransmissionUnit: 1_333))
                let unmarked = try netlink.route(to: address("10.6.0.7"), mark: 0x52)
                #expect(unmarked.interfaceIndex == near)

                // Link-local destinations are everywhere: the interface tells which one is meant.
                for name in ["slt-near", "slt-second"] {
                    try run("ip", "route", "replace", "fe80::/64", "dev", name, "metric", "1")
                    let local = try netlink.route(to: address("fe80::99"), interface: interfaceIndex(name))
                    #expect(local.interfaceIndex == interfaceIndex(name))
                }

                try run("ip", "rule", "add", "from", "10.8.0.1", "table", "100")
                let sourced = try netlink.route(to: address("10.6.0.7"), from: address("10.8.0.1"))
                #expect(sourced.interfaceIndex == interfaceIndex("slt-second"))
                // An IPv4 source must be an address of this machine, an IPv6 source need not.
                #expect(throws: NetlinkError.refused(errno: ENETUNREACH)) {
                    try netlink.route(to: address("10.6.0.7"), from: address("10.6.0.77"))
                }
                let foreign = try netlink.route(to: address("fd00:6::7"), from: address("fd00:6::77"))
                #expect(foreign.interfaceIndex == near)
            }
        }
    }

    @Test func anOverrunSaysThatEverythingMayHaveChanged() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let netlink = try channel.openNetlink()
            var loop = try EventLoop()
            var events = EventBuffer(capacity: 2)
            try netlink.register(with: loop, token: 1)
            // More than the default receive buffer holds: each address is a message, and so is its route.
            try run(
                "bash", "-c",
                """
                for i in {0..15}; do for j in {1..250}; do
                echo "addr add 127.77.$i.$j/32 dev lo"; done; done | ip -batch -
                """)
            try loop.wait(until: HostClock.now() + patience, into: &events)
            #expect(events.count == 1)
            try awaitChange(netlink, "the overrun") { $0 == .everythingMayHaveChanged }
            // It works on afterwards.
            try drain(netlink)
            try run("ip", "addr", "add", "127.78.0.1/32", "dev", "lo")
            try awaitChange(netlink, "the next address") {
                $0 == .addressAdded(address("127.78.0.1"), interfaceIndex: interfaceIndex("lo"))
            }
            try netlink.unregister(from: loop)
        }
    }

    @Test func followsADeviceIntoAnotherNamespaceAndComesBack() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let home = try channel.openNetlink()
            let device = try channel.openTUN(named: interfaceName("slt-move"), maximumTransmissionUnit: 1_420)
            let index = interfaceIndex("slt-move")
            let stillHere = try channel.openNetlink(namespaceOf: device.identifier)
            #expect(stillHere.isHome == true)
            let other = try makeNetworkNamespace()
            let before = try namespaceIdentity(openOwnNamespace())
            try run("ip", "link", "set", "slt-move", "netns", path(of: other))
            try awaitChange(home, "the link that left") { $0 == .linkRemoved(index: index) }
            #expect(throws: NetlinkError.refused(errno: ENODEV)) { try home.link(named: interfaceName("slt-move")) }

            let there = try channel.openNetlink(namespaceOf: device.identifier)
            #expect(there.isHome == false)
            #expect(try namespaceIdentity(openOwnNamespace()) == before)
            let name = try device.currentName()
            let link = try there.link(named: name)
            #expect(link.maximumTransmissionUnit == 1_420)
            try inNetworkNamespace(other) { try run("ip", "link", "set", "slt-move", "mtu", "1300", "up") }
            try awaitChange(there, "the MTU over there") { change in
                guard case .linkChanged(let link) = change else { return false }
                return link.name == "slt-move" && link.maximumTransmissionUnit == 1_300 && link.isUp
            }
            #expect(throws: PrivilegedFailure.unknownIdentifier) {
                _ = try channel.openNetlink(namespaceOf: DeviceIdentifier(rawValue: 999))
            }
            // What is opened next is opened at home.
            let pair = try channel.openUDPSockets(port: 51_820, mark: 0)
            try inNetworkNamespace(other) {
                var elsewhere = InProcessPrivilegedChannel(PrivilegedService())
                _ = try elsewhere.openUDPSockets(port: 51_820, mark: 0)
            }
            _ = pair.port
        }
    }

    @Test func readsNoticesFromOtherNamespacesOnlyOnce() throws {
        try inNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let notices = try channel.openLinkNotices()
            // A pair whose ends are in different namespaces gives each a number for the other.
            try withLinkedNamespace(localAddresses: [], remoteAddresses: []) { other in
                try drain(notices)
                try inNetworkNamespace(other) { try run("ip", "link", "set", "slt-far", "mtu", "1404") }
                try awaitChange(notices, "the MTU over there") { change in
                    guard case .linkChanged(let link) = change else { return false }
                    return link.name == "slt-far" && link.maximumTransmissionUnit == 1_404
                }
                try drain(notices)
                var loop = try EventLoop()
                var events = EventBuffer(capacity: 2)
                try notices.register(with: loop, token: 1)
                try loop.wait(until: HostClock.now() + .milliseconds(200), into: &events)
                #expect(events.count == 0)
                try notices.unregister(from: loop)
            }
        }
    }

    /// Reads changes until one is what was awaited.
    private func awaitChange(
        _ netlink: borrowing NetlinkConnection, _ awaited: String, _ isAwaited: (NetlinkChange) -> Bool
    ) throws {
        var isFound = false
        try eventually(awaited) {
            try netlink.readChanges { if isAwaited($0) { isFound = true } }
            return isFound ? () : nil
        }
    }

    /// Reads what has come so far.
    private func drain(_ netlink: borrowing NetlinkConnection) throws {
        var isEmpty = false
        while !isEmpty {
            isEmpty = true
            try netlink.readChanges { _ in isEmpty = false }
        }
    }
}
