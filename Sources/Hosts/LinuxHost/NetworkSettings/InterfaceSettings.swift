internal import Glibc
internal import IPPacket
internal import Provider

/// The settings of one interface: all of them are in force, or none.
///
///     ┌─ none ─┐── apply ──▶ ┌─ in force ─┐── apply: the difference; a failure brings back what was
///     │        │◀── clear ── │            │──┐
///     └────────┘             └────────────┘◀─┘
///
/// What is done is recorded before it is done, so that it can be undone by the next instance when this one dies. Each object is
/// undone by exactly what it is, our mark of origin included; nobody else's is touched.
final class InterfaceSettings {
    /// The interface, when settings were first applied.
    let interface: InterfaceName
    let paths: SettingsPaths
    private let executor: SettingsExecutor
    /// What is in force; nil for nothing.
    var record: SettingsRecord?
    /// Where that is recorded.
    var file: SettingsRecordFile?

    /// No settings yet, for an interface in the calling thread's network namespace.
    init(
        of interface: InterfaceName, netlink: consuming NetlinkSocket, paths: SettingsPaths = SettingsPaths()
    ) {
        self.interface = interface
        self.paths = paths
        executor = SettingsExecutor(paths: paths, netlink: netlink)
    }

    deinit {
        _ = clear()
    }

    /// Brings settings into force, in the place of those that are.
    ///
    /// - Throws: When a step fails; all before it are undone then.
    func apply(
        _ settings: PacketTunnelNetworkSettings, routing options: RoutingOptions
    ) throws(InterfaceSettingsError) -> AppliedSettings {
        try SettingsRecordFile.exclusively(in: paths.stateFolder) { () throws(InterfaceSettingsError) in
            try applyExclusively(settings, options)
        }
    }

    /// Adds again what somebody else took away: the kernel an interface's routes when it is set down, wg-quick all rules that look
    /// like its own. For after a change of links, addresses or routes; it changes nothing when all is there.
    ///
    /// - Returns: How much was missing.
    func restore() -> Int {
        guard let record else { return 0 }
        var count = 0
        for object in record.objects {
            switch object {
            case .address, .route, .rule:
                // What cannot be added, because it is there or the link is down, stays as it is.
                if (try? executor.perform(.add(object), for: record)) != nil { count += 1 }
            default: break
            }
        }
        return count
    }

    /// Takes everything back, whatever of it is left; returns what did not go as it should.
    func clear() -> [SettingsNote] {
        guard record != nil else { return [] }
        do throws(InterfaceSettingsError) {
            return try SettingsRecordFile.exclusively(in: paths.stateFolder) { clearExclusively() }
        } catch {
            // Without the lock, which is for those who choose a table, it can be undone all the same.
            return clearExclusively()
        }
    }

    private func clearExclusively() -> [SettingsNote] {
        guard let record else { return [] }
        self.record = nil
        let notes = Self.undo(record.objects.reversed().map { .remove($0) }, of: record, by: executor)
        file.take()?.remove()
        return notes
    }

    private func applyExclusively(
        _ settings: PacketTunnelNetworkSettings, _ options: RoutingOptions
    ) throws(InterfaceSettingsError) -> AppliedSettings {
        var notes: [SettingsNote] = []
        let old: SettingsRecord
        if let record { old = record } else { old = try start(&notes) }
        do throws(InterfaceSettingsError) {
            return try change(old, to: settings, options, notes)
        } catch {
            if record == nil { file.take()?.remove() }
            throw error
        }
    }

    /// Cleans up after the dead, and looks at what the interface is like before anything is done.
    func start(_ notes: inout [SettingsNote]) throws(InterfaceSettingsError) -> SettingsRecord {
        notes += try removeLeftovers()
        do throws(SystemCallError) {
            file = try SettingsRecordFile(for: interface, in: paths.stateFolder)
        } catch { throw .record(error) }
        if file == nil { throw .interfaceInUse }
        do throws(NetlinkError) {
            let link = try executor.netlink.link(named: interface)
            return SettingsRecord(
                interface: interface, index: link.index, originalMTU: link.maximumTransmissionUnit, wasUp: link.isUp)
        } catch {
            file.take()?.remove()
            if error == .refused(errno: ENODEV) { throw .unknownInterface }
            throw .question(.link, errno: error.errorNumber)
        }
    }

    private func change(
        _ old: SettingsRecord, to settings: PacketTunnelNetworkSettings, _ options: RoutingOptions,
        _ startNotes: [SettingsNote]
    ) throws(InterfaceSettingsError) -> AppliedSettings {
        var notes = startNotes
        var new = old
        if !RoutingPlan.needsOwnTable(settings, options) {
            new.allotment = nil
        } else if old.allotment == nil || options.firewallMark.map({ $0 != old.allotment?.mark }) ?? false {
            new.allotment = try RoutingInventory(asking: executor.netlink).allotment(mark: options.firewallMark)
        }
        let mark = new.allotment?.mark ?? options.firewallMark
        let size = MTUDerivation.derive(
            settings, endpoints: options.endpoints.map(\.value), mark: mark ?? 0, own: old.index,
            asking: executor.netlink)
        let routing = try RoutingPlan(settings, options, allotment: new.allotment)
        new.objects =
            SettingsPlan(
                settings, routing: routing, allotment: new.allotment, maximumTransmissionUnit: size,
                interface: interface, index: old.index
            ).objects
        let bringsResolvers = new.objects.contains { if case .resolvers = $0 { true } else { false } }
        if bringsResolvers, new.resolverSystem == nil {
            new.resolverSystem = ResolverConfiguration(paths: paths).system(for: interface)
        }
        let steps = SettingsStep.steps(from: old.objects, to: new.objects)
        if !steps.isEmpty { notes += try carryOut(steps, from: old, to: new) }
        if !bringsResolvers { new.resolverSystem = nil }
        if record != new {
            record = new
            // What the file has already undoes it as well: it has all of this and more.
            try? file?.write(new)
        }
        return AppliedSettings(
            firewallMark: mark, table: new.allotment?.table, maximumTransmissionUnit: size, notes: notes)
    }

    /// Carries steps out, recorded before they are done; a failure takes them back.
    func carryOut(
        _ steps: [SettingsStep], from old: SettingsRecord, to new: SettingsRecord
    ) throws(InterfaceSettingsError) -> [SettingsNote] {
        var either = new
        let had = Set(old.objects)
        either.objects = old.objects + new.objects.filter { !had.contains($0) }
        do throws(SystemCallError) { try file?.write(either) } catch { throw .record(error) }
        var notes: [SettingsNote] = []
        var done: [SettingsStep] = []
        do throws(InterfaceSettingsError) {
            for step in steps {
                notes += try executor.perform(step, for: new)
                done.append(step)
            }
            if !old.objects.isEmpty { try mend(new) }
        } catch {
            _ = Self.undo(done.reversed().map(\.inverse), of: new, by: executor)
            if !old.objects.isEmpty {
                try? mend(old)
                try? file?.write(old)
            }
            throw error
        }
        return notes
    }

    /// Adds again what the kernel took away beside what it was told to: with the first address of a network the others in it,
    /// with the last address of a family its routes.
    private func mend(_ record: SettingsRecord) throws(InterfaceSettingsError) {
        for object in record.objects {
            switch object {
            case .address, .route:
                do throws(InterfaceSettingsError) {
                    _ = try executor.perform(.add(object), for: record)
                } catch {
                    guard case .refused(_, _, EEXIST) = error else { throw error }
                }
            default: break
            }
        }
    }

    /// Takes steps back, whatever becomes of each.
    private static func undo(
        _ steps: [SettingsStep], of record: SettingsRecord, by executor: borrowing SettingsExecutor
    ) -> [SettingsNote] {
        var notes: [SettingsNote] = []
        for step in steps {
            do throws(InterfaceSettingsError) {
                notes += try executor.perform(step, for: record)
            } catch {
                switch step {
                case .add(let object), .remove(let object), .replace(_, let object):
                    notes.append(.notUndone(object, errno: error.errorNumber))
                }
            }
        }
        return notes
    }

    /// Undoes what instances left that died, as far as their records can be read.
    func removeLeftovers() throws(InterfaceSettingsError) -> [SettingsNote] {
        var notes: [SettingsNote] = []
        do throws(SystemCallError) {
            try SettingsRecordFile.forEachLeftover(in: paths.stateFolder) { contents in
                if contents.isIncomplete { notes.append(.leftoversUnreadable) }
                guard let record = contents.record else { return }
                if !notes.contains(.leftoversRemoved) { notes.append(.leftoversRemoved) }
                // An interface that has the name or the number now may be another one.
                let link = try? executor.netlink.link(at: record.index)
                let isSame = link?.name == record.interface.string
                let objects = record.objects.filter { isSame || !$0.belongsToInterface }
                _ = Self.undo(objects.reversed().map { .remove($0) }, of: record, by: executor)
            }
        } catch { throw .record(error) }
        return notes
    }
}

extension SettingsObject {
    /// True when it goes with the interface by itself.
    fileprivate var belongsToInterface: Bool {
        switch self {
        case .maximumTransmissionUnit, .address, .linkUp: true
        case .route(let route): route.kind == .device
        case .sourceValidMark, .firewall, .rule, .resolvers: false
        }
    }
}
