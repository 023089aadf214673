internal import IPPacket
internal import Provider

/// Everything that settings put into the system, in the order that it is put there: what others rest on comes first.
struct SettingsPlan: Hashable {
    /// The objects.
    private(set) var objects: [SettingsObject] = []

    /// The plan for an interface.
    init(
        _ settings: PacketTunnelNetworkSettings, routing: RoutingPlan, allotment: RoutingAllotment?,
        maximumTransmissionUnit: Int, interface: InterfaceName, index: UInt32
    ) {
        if routing.ownFamilies.contains(.v4) { objects.append(.sourceValidMark) }
        // The kernel takes IPv6 addresses only while the MTU is large enough for them.
        objects.append(.maximumTransmissionUnit(maximumTransmissionUnit))
        var seen: Set<InterfaceAddress> = []
        let addresses = settings.addresses.filter { seen.insert($0).inserted }
        objects += addresses.map { .address(TextCoded($0)) }
        objects.append(.linkUp)
        if let allotment, !routing.ownFamilies.isEmpty {
            let guarded = addresses.map(\.address).filter { routing.ownFamilies.contains(AddressFamily(of: $0)) }
            objects.append(
                .firewall(
                    FirewallTable(
                        interface: interface, index: index, families: routing.ownFamilies,
                        addresses: guarded.map { TextCoded($0) }, mark: allotment.mark,
                        inboundMark: allotment.inboundMark)))
        }
        // Rules come when their tables are complete, so that nothing takes a wrong way meanwhile.
        objects += routing.routes.filter { $0.table != RouteEntry.mainTable }.map { .route($0) }
        objects += routing.rules.map { .rule($0) }
        objects += routing.routes.filter { $0.table == RouteEntry.mainTable }.map { .route($0) }
        if let resolvers = ResolverSettings(settings, of: interface) { objects.append(.resolvers(resolvers)) }
    }
}

/// One step from one plan to another.
enum SettingsStep: Hashable {
    case add(SettingsObject)
    case remove(SettingsObject)
    case replace(SettingsObject, with: SettingsObject)

    /// The step back.
    var inverse: Self {
        switch self {
        case .add(let object): .remove(object)
        case .remove(let object): .add(object)
        case .replace(let old, let new): .replace(new, with: old)
        }
    }

    /// The steps from `old` to `new`. What is in both is not touched; what is new comes before what is old goes, unless the
    /// kernel cannot have both.
    static func steps(from old: [SettingsObject], to new: [SettingsObject]) -> [SettingsStep] {
        var steps: [SettingsStep] = []
        var left = old.filter { !new.contains($0) }
        for object in new where !old.contains(object) {
            guard let index = left.firstIndex(where: { $0.excludes(object) }) else {
                steps.append(.add(object))
                continue
            }
            let displaced = left.remove(at: index)
            steps += object.isSingular ? [.replace(displaced, with: object)] : [.remove(displaced), .add(object)]
        }
        return steps + left.reversed().map { .remove($0) }
    }
}

extension SettingsObject {
    /// True when an interface cannot have both.
    fileprivate func excludes(_ other: SettingsObject) -> Bool {
        switch (self, other) {
        case (.address(let mine), .address(let other)): mine.value.address == other.value.address
        case (.route(let mine), .route(let other)):
            mine.table == other.table && mine.destination == other.destination
        case (.sourceValidMark, .sourceValidMark), (.maximumTransmissionUnit, .maximumTransmissionUnit),
            (.linkUp, .linkUp), (.firewall, .firewall), (.resolvers, .resolvers):
            true
        default: false
        }
    }
}
