internal import IPPacket

/// A route that can be added, and taken away again by exactly what it is.
struct RouteEntry: Hashable, Codable, Sendable {
    /// Where a route leads.
    enum Kind: String, Hashable, Codable, Sendable {
        /// Out of the interface that the settings are for.
        case device
        /// Out of the table: the look-up goes on with the next rule.
        case `throw`
    }

    /// Who added it, as the kernel and `ip route` show it: a number that nobody else has (`/etc/iproute2/rt_protos`), the same
    /// for rules. It marks what is ours, also after the process that added it has died.
    static let protocolNumber: UInt8 = 83
    /// The table that is looked up when no rule says otherwise.
    static let mainTable: UInt32 = 254

    /// The destinations.
    var destination: TextCoded<IPPrefix>
    /// The number of its table.
    var table: UInt32
    /// Where it leads.
    var kind: Kind

    /// A route in a table.
    init(_ destination: IPPrefix, table: UInt32, kind: Kind) {
        self.destination = TextCoded(destination)
        self.table = table
        self.kind = kind
    }
}

extension RouteEntry: CustomStringConvertible {
    /// The destinations, and the table when it is not the main one.
    var description: String {
        let place = table == Self.mainTable ? "" : " in table \(table)"
        return kind == .throw ? "throw \(destination.value)\(place)" : "\(destination.value)\(place)"
    }
}
