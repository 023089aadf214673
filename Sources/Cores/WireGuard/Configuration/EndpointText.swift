import IPPacket

extension Endpoint {
    /// The endpoint in `text`: `192.0.2.1:51820`, `[2001:db8::1]:51820` or, for a link-local address, `[fe80::1%eth0]:51820`
    /// with an interface's name or number.
    ///
    /// - Parameter interfaceIndex: Finds the number of an interface by its name; nil when there is none.
    public init(parsing text: String, interfaceIndex: (String) -> UInt32?) throws(ConfigurationError) {
        guard let colon = text.lastIndex(of: ":"), let port = Self.port(text[text.index(after: colon)...]) else {
            throw .invalidValue
        }
        let host = text[..<colon]
        guard host.hasPrefix("[") else {
            guard let address = try? IPv4Address(parsing: String(host)) else { throw .invalidValue }
            self.init(address: .v4(address), port: port)
            return
        }
        guard host.hasSuffix("]") else { throw .invalidValue }
        let inside = host.dropFirst().dropLast()
        let percent = inside.firstIndex(of: "%") ?? inside.endIndex
        guard let address = try? IPv6Address(parsing: String(inside[..<percent])) else { throw .invalidValue }
        var scope: UInt32 = 0
        if percent != inside.endIndex {
            let zone = String(inside[inside.index(after: percent)...])
            guard let index = interfaceIndex(zone) ?? UInt32(zone), index != 0 else { throw .invalidValue }
            scope = index
        }
        self.init(address: .v6(address), port: port, scope: scope)
    }

    /// The endpoint as `init(parsing:interfaceIndex:)` reads it.
    ///
    /// - Parameter interfaceName: Finds the name of an interface by its number; nil when there is none.
    public func text(interfaceName: (UInt32) -> String?) -> String {
        switch address {
        case .v4(let address):
            return "\(address):\(port)"
        case .v6(let address):
            let zone = scope == 0 ? "" : "%\(interfaceName(scope) ?? String(scope))"
            return "[\(address)\(zone)]:\(port)"
        }
    }

    private static func port(_ digits: Substring) -> UInt16? {
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        return UInt16(digits)
    }
}
