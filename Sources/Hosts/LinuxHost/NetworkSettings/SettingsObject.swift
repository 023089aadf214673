internal import IPPacket
internal import Provider

/// One thing that settings put into the system, and that is taken out again by exactly what it is.
enum SettingsObject: Hashable, Codable, Sendable {
    /// Marks count when the kernel asks whether a packet came in by the way back to its source
    /// (`net.ipv4.conf.all.src_valid_mark`).
    case sourceValidMark
    /// The interface's MTU in bytes.
    case maximumTransmissionUnit(Int)
    /// An address of the interface.
    case address(TextCoded<InterfaceAddress>)
    /// The interface is up.
    case linkUp
    /// Our table in the firewall.
    case firewall(FirewallTable)
    /// A route.
    case route(RouteEntry)
    /// A routing rule.
    case rule(RuleEntry)
    /// The machine's resolvers.
    case resolvers(ResolverSettings)
}

extension SettingsObject {
    /// True when the interface can have one of these only, so that a new one takes an old one's place.
    var isSingular: Bool {
        switch self {
        case .sourceValidMark, .maximumTransmissionUnit, .linkUp, .firewall, .resolvers: true
        case .address, .route, .rule: false
        }
    }

    /// What it is, without what it says: this can be in a log.
    var kind: String {
        switch self {
        case .sourceValidMark: "the kernel setting src_valid_mark"
        case .maximumTransmissionUnit: "the MTU"
        case .address: "an address"
        case .linkUp: "the state of the link"
        case .firewall: "the firewall table"
        case .route: "a route"
        case .rule: "a routing rule"
        case .resolvers: "the resolvers"
        }
    }
}

extension SettingsObject: CustomStringConvertible {
    /// What it is and says, for whoever configured it.
    var description: String {
        switch self {
        case .sourceValidMark, .linkUp, .resolvers: kind
        case .maximumTransmissionUnit(let size): "the MTU \(size)"
        case .address(let address): "the address \(address.value)"
        case .firewall(let table): "the firewall table \(table.name)"
        case .route(let route): "the route \(route)"
        case .rule(let rule): "the rule \(rule)"
        }
    }
}
