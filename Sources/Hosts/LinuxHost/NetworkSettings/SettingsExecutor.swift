internal import Glibc
internal import IPPacket
internal import Provider

/// Carries out the steps of settings, one at a time. What is to be removed and is gone already counts as removed: the kernel
/// removes an interface's routes and addresses with it.
struct SettingsExecutor: ~Copyable {
    /// Where things are.
    let paths: SettingsPaths
    /// For questions and requests, in the network namespace that the settings are for.
    let netlink: NetlinkSocket

    /// Carries out a step for the interface of a record.
    func perform(_ step: SettingsStep, for record: SettingsRecord) throws(InterfaceSettingsError) -> [SettingsNote] {
        switch step {
        case .add(let object): return try set(object, .add, for: record)
        case .replace(let old, let object):
            do throws(InterfaceSettingsError) {
                return try set(object, .set, for: record)
            } catch {
                // What was there has gone with what was done of it.
                if case .resolvers = old { _ = try? set(old, .set, for: record) }
                throw error
            }
        case .remove(let object):
            do throws(InterfaceSettingsError) {
                return try remove(object, for: record)
            } catch {
                if case .refused(_, _, let errno) = error, [ENODEV, ENOENT, ESRCH, EADDRNOTAVAIL].contains(errno) {
                    return []
                }
                throw error
            }
        }
    }

    private func set(
        _ object: SettingsObject, _ verb: SettingsVerb, for record: SettingsRecord
    ) throws(InterfaceSettingsError) -> [SettingsNote] {
        switch object {
        case .sourceValidMark: try SourceValidMark(paths: paths).enable(object)
        case .maximumTransmissionUnit(let size):
            try unsafe ask(
                NetlinkRequest.link(at: record.index, maximumTransmissionUnit: size, isUp: nil), .set, object)
        case .address(let address):
            try changeAddress(address.value, of: record.index, isAdded: true, object)
        case .linkUp:
            if record.wasUp { break }
            try unsafe ask(
                NetlinkRequest.link(at: record.index, maximumTransmissionUnit: nil, isUp: true), .set, object)
        case .firewall(let table): try runFirewall(table.commands, verb, object)
        case .route(let route): try changeRoute(route, through: record.index, isAdded: true, object)
        case .rule(let rule): try unsafe ask(NetlinkRequest.rule(rule, isAdded: true), .add, object)
        case .resolvers(let resolvers):
            guard let system = record.resolverSystem else { break }
            do throws(ResolverConfiguration.Failure) {
                try ResolverConfiguration(paths: paths).set(resolvers, through: system)
            } catch {
                // What was done of it is taken back with it.
                _ = try? ResolverConfiguration(paths: paths).clear(resolvers.interface, through: system)
                throw InterfaceSettingsError(.set, object, error)
            }
            if system == .file, resolvers.routedDomains != nil { return [.resolversTakeEveryName] }
        }
        return []
    }

    private func remove(
        _ object: SettingsObject, for record: SettingsRecord
    ) throws(InterfaceSettingsError) -> [SettingsNote] {
        switch object {
        case .sourceValidMark: try SourceValidMark(paths: paths).disable(asking: netlink)
        case .maximumTransmissionUnit:
            try unsafe ask(
                NetlinkRequest.link(
                    at: record.index, maximumTransmissionUnit: record.originalMTU, isUp: nil), .set, object)
        case .address(let address):
            try changeAddress(address.value, of: record.index, isAdded: false, object)
        case .linkUp:
            if record.wasUp { break }
            try unsafe ask(
                NetlinkRequest.link(at: record.index, maximumTransmissionUnit: nil, isUp: false), .set, object)
        case .firewall(let table): try runFirewall(table.removal, .remove, object)
        case .route(let route): try changeRoute(route, through: record.index, isAdded: false, object)
        case .rule(let rule): try unsafe ask(NetlinkRequest.rule(rule, isAdded: false), .remove, object)
        case .resolvers(let resolvers):
            guard let system = record.resolverSystem else { break }
            do throws(ResolverConfiguration.Failure) {
                return try ResolverConfiguration(paths: paths).clear(resolvers.interface, through: system)
            } catch { throw InterfaceSettingsError(.remove, object, error) }
        }
        return []
    }

    private func changeAddress(
        _ address: InterfaceAddress, of index: UInt32, isAdded: Bool, _ object: SettingsObject
    ) throws(InterfaceSettingsError) {
        let message: OpaquePointer
        do throws(NetlinkError) {
            unsafe message = try NetlinkRequest.address(address, of: index, isAdded: isAdded)
        } catch { throw .refused(isAdded ? .add : .remove, object, errno: error.errorNumber) }
        try unsafe ask(message, isAdded ? .add : .remove, object)
    }

    private func changeRoute(
        _ route: RouteEntry, through index: UInt32, isAdded: Bool, _ object: SettingsObject
    ) throws(InterfaceSettingsError) {
        let message: OpaquePointer
        do throws(NetlinkError) {
            unsafe message = try NetlinkRequest.route(route, through: index, isAdded: isAdded)
        } catch { throw .refused(isAdded ? .add : .remove, object, errno: error.errorNumber) }
        try unsafe ask(message, isAdded ? .add : .remove, object)
    }

    private func ask(
        _ message: OpaquePointer?, _ verb: SettingsVerb, _ object: SettingsObject
    ) throws(InterfaceSettingsError) {
        do throws(NetlinkError) {
            try unsafe netlink.perform(message)
        } catch { throw .refused(verb, object, errno: error.errorNumber) }
    }

    private func runFirewall(
        _ commands: String, _ verb: SettingsVerb, _ object: SettingsObject
    ) throws(InterfaceSettingsError) {
        do throws(NFTables.Failure) {
            try NFTables().perform(commands)
        } catch { throw .declined(verb, object, reason: error.reason) }
    }
}

extension InterfaceSettingsError {
    /// What became of resolvers.
    fileprivate init(_ verb: SettingsVerb, _ object: SettingsObject, _ failure: ResolverConfiguration.Failure) {
        self =
            failure.errno.map { .refused(verb, object, errno: $0) }
            ?? .declined(verb, object, reason: failure.reason)
    }
}
