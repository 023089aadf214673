internal import IPPacket

/// Our table in nftables: keeps strangers on other interfaces from talking to the tunnel's addresses, and marks connections so
/// that they stay on the way that they came in by, whatever the routes say.
///
/// | chain | what it does |
/// |---|---|
/// | preraw | drops what comes to an address of the tunnel by another interface, from another machine |
/// | premangle | marks connections to this machine by the interface that they came in by; gives packets their connection's mark |
/// | output | gives answers their connection's mark, so that the kernel looks for the way again |
/// | postmangle | keeps the mark of the tunnel's own datagrams for their connection, so that the answers have it too |
struct FirewallTable: Hashable, Codable, Sendable {
    /// The interface.
    var interface: InterfaceName
    /// Its index.
    var index: UInt32
    /// The families that have routes in the tunnel's own table.
    var families: Set<AddressFamily>
    /// The tunnel's addresses of those families.
    var addresses: [TextCoded<IPAddress>]
    /// The mark of the tunnel's own datagrams and of connections that came in elsewhere.
    var mark: UInt32
    /// The mark of connections that came in through the tunnel.
    var inboundMark: UInt32

    /// The table's name. What nftables takes in no name is written as a slash, which no interface has in its name, and two
    /// hexadecimal digits for each byte.
    var name: String {
        var name = "sluice-"
        for byte in interface.string.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                name.unicodeScalars.append(Unicode.Scalar(byte))
            default: name += byte < 16 ? "/0\(String(byte, radix: 16))" : "/\(String(byte, radix: 16))"
            }
        }
        return name
    }

    /// What removes the table, and is fine when there is none.
    var removal: String {
        "add table inet \(name)\ndelete table inet \(name)\n"
    }

    /// What makes the table afresh, in one transaction. Numbers, addresses and the name are all that goes in.
    var commands: String {
        let family =
            switch (families.contains(.v4), families.contains(.v6)) {
            case (true, true): ""
            case (true, false): "meta nfproto ipv4 "
            default: "meta nfproto ipv6 "
            }
        // A new connection from elsewhere to an address of this machine's, before any of it is translated.
        let new = "\(family)ct state new ct direction original fib daddr type local"
        var lines = ["add table inet \(name)", "delete table inet \(name)", "table inet \(name) {"]
        func chain(_ name: String, _ type: String, _ hook: String, _ priority: Int, _ rules: [String]) {
            lines.append("chain \(name) {")
            lines.append("type \(type) hook \(hook) priority \(priority); policy accept;")
            lines += rules
            lines.append("}")
        }
        chain(
            "preraw", "filter", "prerouting", -300,
            addresses.map {
                let keyword = AddressFamily(of: $0.value) == .v4 ? "ip" : "ip6"
                return "iif != \(index) \(keyword) daddr \($0.value) fib saddr type != local drop"
            })
        chain(
            "premangle", "filter", "prerouting", -150,
            [
                // Whoever owns the interface has the last word on the mark.
                "iif \(index) \(new) ct mark set \(inboundMark)",
                "iif != { \(index), 1 } ct mark 0 \(new) ct mark set \(mark)",
                // In both directions, so that the kernel's check of the way back sees the mark.
                "\(family)ct mark \(mark) meta mark set \(mark)",
                // What is translated and goes on to another machine must not be sent back into the tunnel.
                "\(family)ct mark \(inboundMark) ct direction reply meta mark set \(inboundMark)",
            ])
        chain(
            "output", "route", "output", -150,
            [
                "\(family)ct mark \(mark) ct direction reply meta mark set \(mark)",
                "\(family)ct mark \(inboundMark) ct direction reply meta mark set \(inboundMark)",
            ])
        chain(
            "postmangle", "filter", "postrouting", -150,
            ["\(family)meta l4proto udp meta mark \(mark) ct mark set meta mark"])
        lines.append("}")
        return lines.joined(separator: "\n") + "\n"
    }
}
