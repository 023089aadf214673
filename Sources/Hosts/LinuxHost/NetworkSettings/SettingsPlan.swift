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
        let (had, wanted) = (Set(old), Set(new))
        let obsolete = old.filter { !wanted.contains($0) }
        var displaced: [SettingsObject.Place: SettingsObject] = [:]
        for object in obsolete { if let place = object.place { displaced[place] = object } }
        var steps: [SettingsStep] = []
        var gone: Set<SettingsObject> = []
        for object in new where !had.contains(object) {
            guard let place = object.place, let other = displaced.removeValue(forKey: place) else {
                steps.append(.add(object))
                continue
            }
            gone.insert(other)
            steps += object.isSingular ? [.replace(other, with: object)] : [.remove(other), .add(object)]
        }
        return steps + obsolete.reversed().filter { !gone.contains($0) }.map { .remove($0) }
    }
}

extension SettingsObject {
    /// What an interface, or the kernel, has only one object for.
    fileprivate enum Place: Hashable {
        case sourceValidMark, maximumTransmissionUnit, linkUp, firewall, resolvers
        case address(IPAddress)
        case route(IPPrefix, table: UInt32)
    }

    /// The object's place; nil when there can be any number.
    fileprivate var place: Place? {
        switch self {
        case .sourceValidMark: .sourceValidMark
        case .maximumTransmissionUnit: .maximumTransmissionUnit
        case .linkUp: .linkUp
        case .firewall: .firewall
        case .resolvers: .resolvers
        case .address(let address): .address(address.value.address)
        case .route(let route): .route(route.destination.value, table: route.table)
        case .rule: nil
        }
    }
}
