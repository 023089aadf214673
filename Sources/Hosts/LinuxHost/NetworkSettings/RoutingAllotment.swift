internal import IPPacket

/// What a tunnel with a table of its own has for itself alone.
struct RoutingAllotment: Hashable, Codable, Sendable {
    /// The number of its table.
    var table: UInt32
    /// The firewall mark of its own datagrams, and of connections that came in elsewhere.
    var mark: UInt32
    /// Which range of rule priorities is its: 0 for the range just before the main table's rule.
    var slot: UInt32

    /// The firewall mark of connections that came in through the tunnel.
    var inboundMark: UInt32 { mark ^ 0x8000_0000 }

    /// The first number for tables that are chosen, as wg-quick chooses them.
    static let firstTable: UInt32 = 51_820
    /// The priority of the rules that come before those of every tunnel: what is marked has its way already.
    static let markedPriority: UInt32 = 28_600
    /// How many tunnels can have a table of their own.
    static let slotCount: UInt32 = 15
    /// How many priorities a tunnel has: one for port 53 and a pair for each prefix length, all of which are numbered in the
    /// order that they are tried, so that rules can come and go while others stay.
    static let slotSize: UInt32 = 260
    /// The priority of the main table's rule.
    private static let mainPriority: UInt32 = 32_766

    /// The priority of the rules for port 53.
    var servicePriority: UInt32 { Self.firstPriority(of: slot) }
    /// The priority of the rule that prefers longer routes of the main table to the tunnel's of `length` bits.
    func mainPriority(forLength length: UInt8) -> UInt32 { servicePriority + 2 + 2 * (128 - UInt32(length)) }
    /// The priority of the rule that looks up the tunnel's routes of `length` bits.
    func tunnelPriority(forLength length: UInt8) -> UInt32 { mainPriority(forLength: length) + 1 }

    /// The slot that a priority belongs to; nil when it is outside of all.
    static func slot(of priority: UInt32) -> UInt32? {
        guard priority < mainPriority, priority >= firstPriority(of: slotCount - 1) else { return nil }
        return (mainPriority - 1 - priority) / slotSize
    }

    private static func firstPriority(of slot: UInt32) -> UInt32 { mainPriority - slotSize * (slot + 1) }
}

/// What tables, marks and priorities are taken at present.
struct RoutingInventory: Sendable {
    private var tables: Set<UInt32> = [0, 253, 254, 255]
    private var slots: Set<UInt32> = []

    /// Looks at every route and rule of both families.
    init(asking netlink: borrowing NetlinkSocket) throws(InterfaceSettingsError) {
        var tables = tables
        for family in AddressFamily.allCases {
            do throws(NetlinkError) {
                try netlink.forEachRoute(of: family) { tables.insert($0.table) }
            } catch {
                guard error.meansMissingFamily else { throw .question(.routes, errno: error.errorNumber) }
            }
            do throws(NetlinkError) {
                for rule in try netlink.rules(of: family) {
                    tables.insert(rule.table)
                    // A mark that somebody's rule asks for must not be a tunnel's.
                    tables.insert(rule.mark)
                    // Whoever's rules are there, wg-quick's for one.
                    if let slot = RoutingAllotment.slot(of: rule.priority) { slots.insert(slot) }
                }
            } catch {
                guard error.meansMissingFamily else { throw .question(.rules, errno: error.errorNumber) }
            }
        }
        self.tables = tables
    }

    /// A free table, a mark and a slot. A mark that is given is taken as it is; it is the table's number too when that is free.
    /// Who comes later is tried before those that are there, as with wg-quick.
    func allotment(mark: UInt32?) throws(InterfaceSettingsError) -> RoutingAllotment {
        var table = RoutingAllotment.firstTable
        if let mark, !tables.contains(mark) {
            table = mark
        } else {
            while tables.contains(table) {
                if table == .max { throw .noFreeTable }
                table += 1
            }
        }
        let next = slots.max().map { $0 + 1 } ?? 0
        let slot =
            next < RoutingAllotment.slotCount ? next : (0..<RoutingAllotment.slotCount).first { !slots.contains($0) }
        guard let slot else { throw .noFreeTable }
        return RoutingAllotment(table: table, mark: mark ?? table, slot: slot)
    }
}
