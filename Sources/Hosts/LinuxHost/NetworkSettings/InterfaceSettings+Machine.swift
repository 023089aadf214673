extension InterfaceSettings {
    /// Brings objects into force that are the machine's rather than a tunnel's, in the place of those that are.
    ///
    /// - Parameters:
    ///   - objects: All of them, in the order that they are added.
    ///   - system: Who is told about resolvers; it stays the same until all is cleared.
    /// - Throws: When a step fails; all before it are undone then.
    func apply(
        _ objects: [SettingsObject], resolversThrough system: ResolverSystem
    ) throws(InterfaceSettingsError) -> [SettingsNote] {
        try SettingsRecordFile.exclusively(in: paths.stateFolder) { () throws(InterfaceSettingsError) in
            var notes: [SettingsNote] = []
            let old: SettingsRecord
            if let record { old = record } else { old = try start(&notes) }
            var new = old
            new.objects = objects
            new.resolverSystem = system
            let steps = SettingsStep.steps(from: old.objects, to: objects)
            do throws(InterfaceSettingsError) {
                if !steps.isEmpty { notes += try carryOut(steps, from: old, to: new) }
            } catch {
                if record == nil { file.take()?.remove() }
                throw error
            }
            record = new
            // What the file has already undoes it as well: it has all of this and more.
            try? file?.write(new)
            return notes
        }
    }

    /// Undoes what instances left that died, with the machine or alone. Where none left anything, nothing is made, and nothing is
    /// waited for.
    func clearLeftovers() throws(InterfaceSettingsError) -> [SettingsNote] {
        let resolverFile = ResolverFile(paths: paths)
        guard SettingsRecordFile.exist(in: paths.stateFolder) || resolverFile.isLeftByReboot else { return [] }
        return try SettingsRecordFile.exclusively(in: paths.stateFolder) { () throws(InterfaceSettingsError) in
            let notes = try removeLeftovers()
            // One that cannot be read is told of by who sets resolvers.
            let isCleared = (try? resolverFile.clearAfterReboot()) ?? false
            return isCleared && notes.isEmpty ? [.leftoversRemoved] : notes
        }
    }
}
