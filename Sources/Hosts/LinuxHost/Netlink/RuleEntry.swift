internal import IPPacket

/// A routing rule that can be added, and taken away again by exactly what it is.
struct RuleEntry: Hashable, Codable, Sendable {
    /// The transport that a rule is for.
    enum Transport: UInt8, Hashable, Codable, Sendable {
        case tcp = 6
        case udp = 17
    }

    /// The family whose packets it concerns.
    var family: AddressFamily
    /// Rules with lower numbers come first.
    var priority: UInt32
    /// The table that is looked up.
    var table: UInt32
    /// The firewall mark that packets have; nil for any.
    var mark: UInt32?
    /// True when it concerns the packets that do *not* fit. The kernel turns the whole match around, not the mark alone.
    var isInverted = false
    /// The destinations; nil for any.
    var destination: TextCoded<IPPrefix>?
    /// The transport and its destination port; nil for any.
    var service: Service?
    /// Routes of this length or less in the table count as not found; nil when all count.
    var suppressedPrefixLength: UInt8?

    /// A transport and a destination port in host order.
    struct Service: Hashable, Codable, Sendable {
        var transport: Transport
        var port: UInt16
    }
}

extension RuleEntry: CustomStringConvertible {
    /// As `ip rule` writes it.
    var description: String {
        var text = "\(priority):"
        if isInverted { text += " not" }
        if let destination { text += " to \(destination.value)" }
        if let mark { text += " fwmark 0x\(String(mark, radix: 16))" }
        if let service { text += " ipproto \(service.transport) dport \(service.port)" }
        text += table == RouteEntry.mainTable ? " lookup main" : " lookup \(table)"
        if let suppressedPrefixLength { text += " suppress_prefixlength \(suppressedPrefixLength)" }
        return text
    }
}
