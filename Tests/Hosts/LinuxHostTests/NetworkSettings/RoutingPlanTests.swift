import IPPacket
import Provider
import Testing

@testable import LinuxHost

/// What the plan says, in the words of ip(8).
@Suite struct RoutingPlanTests {
    private let allotment = RoutingAllotment(table: 51_820, mark: 51_820, slot: 0)

    private func plan(
        _ settings: PacketTunnelNetworkSettings, _ options: RoutingOptions = RoutingOptions()
    ) throws -> RoutingPlan {
        let isOwn = RoutingPlan.needsOwnTable(settings, options)
        return try RoutingPlan(settings, options, allotment: isOwn ? allotment : nil)
    }

    @Test func aSplitTunnelIsInTheMainTableAlone() throws {
        let plan = try plan(
            tunnelSettings(["10.8.0.2/24"], included: ["10.0.0.0/8", "10.1.0.0/16", "10.8.0.0/24", "fd00::/8"]))
        // What the kernel makes a route for by itself, because of the address, is not asked for again.
        #expect(plan.routes.map(\.description) == ["10.1.0.0/16", "10.0.0.0/8", "fd00::/8"])
        #expect(plan.rules.isEmpty)
    }

    @Test func aDefaultRouteHasTheRulesOfWGQuick() throws {
        let plan = try plan(tunnelSettings(["10.8.0.2/24"], included: ["0.0.0.0/0", "10.9.0.0/24"]))
        #expect(plan.routes.map(\.description) == ["10.9.0.0/24", "0.0.0.0/0 in table 51820"])
        #expect(
            plan.rules.map(\.description) == [
                "28600: fwmark 0xca6c lookup main", "28600: fwmark 0x8000ca6c lookup 51820",
                "32765: not fwmark 0xca6c lookup 51820", "32764: lookup main suppress_prefixlength 0",
            ])
        #expect(plan.ownFamilies == [.v4])
    }

    @Test func anExclusionMovesTheRouteAroundItIntoTheOwnTable() throws {
        let plan = try plan(
            tunnelSettings(["10.8.0.2/24"], included: ["10.0.0.0/8", "172.16.0.0/12"], excluded: ["10.2.0.0/16"]))
        #expect(
            plan.routes.map(\.description) == [
                "172.16.0.0/12", "throw 10.2.0.0/16 in table 51820", "10.0.0.0/8 in table 51820",
            ])
        #expect(
            plan.rules.dropFirst(2).map(\.description) == [
                "32749: to 10.0.0.0/8 lookup 51820", "32748: to 10.0.0.0/8 lookup main suppress_prefixlength 8",
            ])
    }

    @Test func anEndpointMovesTheRouteAroundItIntoTheOwnTable() throws {
        let settings = try tunnelSettings(["10.8.0.2/24"], included: ["192.0.2.0/24", "198.51.100.0/24"])
        let plan = try plan(settings, RoutingOptions(endpoints: [address("192.0.2.1")]))
        #expect(plan.routes.map(\.description) == ["198.51.100.0/24", "192.0.2.0/24 in table 51820"])
    }

    @Test func whatIsExcludedAsAWholeIsNotIncluded() throws {
        let plan = try plan(tunnelSettings(["10.8.0.2/24"], included: ["10.0.0.0/8"], excluded: ["10.0.0.0/8"]))
        #expect(plan.routes.isEmpty)
    }

    @Test func aNumberedTableHasNoRules() throws {
        let settings = try tunnelSettings(["10.8.0.2/24"], included: ["0.0.0.0/0"], excluded: ["10.0.0.0/8"])
        let plan = try plan(settings, RoutingOptions(table: .number(77)))
        #expect(plan.routes.map(\.description) == ["throw 10.0.0.0/8 in table 77", "0.0.0.0/0 in table 77"])
        #expect(plan.rules.isEmpty)
        #expect(try self.plan(settings, RoutingOptions(table: .off)).routes.isEmpty)
        #expect(throws: InterfaceSettingsError.excludedRoutesInMainTable) {
            try self.plan(settings, RoutingOptions(table: .number(254)))
        }
    }

    @Test func portFiftyThreeIsRuledIntoTheOwnTableBeforeTheRest() throws {
        let settings = try tunnelSettings(["10.8.0.2/24"], included: ["10.0.0.0/8"])
        let plan = try plan(settings, RoutingOptions(routesDNSIntoTunnel: true))
        #expect(plan.routes.map(\.description) == ["10.0.0.0/8", "10.0.0.0/8 in table 51820"])
        #expect(
            plan.rules.dropFirst(2).map(\.description) == [
                "32506: ipproto udp dport 53 lookup 51820", "32506: ipproto tcp dport 53 lookup 51820",
            ])
    }

    @Test func slotsNeitherOverlapNorLeaveTheirRange() {
        for slot in 0..<RoutingAllotment.slotCount {
            let allotment = RoutingAllotment(table: 1, mark: 1, slot: slot)
            var priorities = [allotment.servicePriority]
            for length in (0...128).reversed() {
                priorities.append(allotment.mainPriority(forLength: UInt8(length)))
                priorities.append(allotment.tunnelPriority(forLength: UInt8(length)))
            }
            #expect(zip(priorities, priorities.dropFirst()).allSatisfy { $0 < $1 })
            #expect(priorities.allSatisfy { RoutingAllotment.slot(of: $0) == slot })
            #expect(priorities.allSatisfy { $0 > RoutingAllotment.markedPriority && $0 < 32_766 })
        }
        #expect(RoutingAllotment.slot(of: RoutingAllotment.markedPriority) == nil)
        #expect(RoutingAllotment.slot(of: 32_766) == nil)
    }

    @Test func namesThatNFTablesDoesNotTakeAreWrittenOtherwise() throws {
        func name(_ interface: String) -> String {
            FirewallTable(
                interface: interfaceName(interface), index: 1, families: [], addresses: [], mark: 1, inboundMark: 2
            ).name
        }
        #expect(name("wg0") == "sluice-wg0")
        #expect(name("a+b@\u{E9};") == "sluice-a/2bb/40/c3/a9/3b")
        try inNewNetworkNamespace {
            for interface in ["wg0", "a+b@\u{E9};", "x\"{}$*", "0.1"] {
                let table = FirewallTable(
                    interface: interfaceName(interface), index: 1, families: [.v4, .v6], addresses: [], mark: 1,
                    inboundMark: 2)
                try NFTables().perform(table.commands)
                #expect(try output(of: "nft", "list", "tables").contains("table inet \(table.name)\n"))
                try NFTables().perform(table.removal)
                #expect(try output(of: "nft", "list", "ruleset") == "")
            }
        }
    }
}
