internal import Glibc
internal import IPPacket

/// Tells whoever keeps the machine's resolvers about those of a tunnel, and takes it back.
struct ResolverConfiguration {
    /// Where things are.
    let paths: SettingsPaths

    /// What went wrong, in the words of the program or the system.
    struct Failure: Error, Hashable {
        var reason: String
        /// The system's number for it; nil where it is a program that refused.
        var errno: Int32?
    }

    /// Who keeps the resolvers of this machine.
    func system(for interface: InterfaceName) -> ResolverSystem {
        if let program = resolvectl { return .resolved(program: program) }
        if let program = resolvconf { return .resolvconf(program: program, record: "\(recordPrefix())\(interface)") }
        return .file
    }

    /// Who keeps the resolvers of the machine itself. systemd-resolved does where the resolver file leads to it: elsewhere
    /// programs would not ask it.
    func systemOfMachine() -> ResolverSystem {
        if isFileOfResolved, let program = resolvectl { return .resolved(program: program) }
        // Resolvers on the machine itself are called lo.NAME, and come before all others.
        if let program = resolvconf { return .resolvconf(program: program, record: "lo.sluice") }
        return .file
    }

    private var runsResolved: Bool { unsafe access(paths.resolvedSocket, F_OK) == 0 }

    /// The program that systemd-resolved is told things by, while it runs.
    private var resolvectl: String? {
        runsResolved ? ProgramRun.find("resolvectl", in: paths.programFolders) : nil
    }

    /// The program resolvconf. systemd's is resolvectl under another name: without systemd-resolved it can do nothing.
    private var resolvconf: String? {
        guard let program = ProgramRun.find("resolvconf", in: paths.programFolders),
            let path = unsafe realpath(program, nil)
        else { return nil }
        // realpath allocated it with malloc.
        defer { unsafe free(path) }
        return unsafe String(cString: path).hasSuffix("/resolvectl") ? nil : program
    }

    /// True when the resolver file is a link to one of systemd-resolved's.
    private var isFileOfResolved: Bool {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        // The pointer and the length are the array's own; the result is how much of it there is.
        let count = unsafe target.withUnsafeMutableBytes { bytes in
            guard let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else { return 0 }
            return unsafe readlink(paths.resolverFile, start, bytes.count)
        }
        guard count > 0 else { return false }
        let text = String(decoding: target.prefix(count), as: UTF8.self)
        return text.hasSuffix("systemd/resolve/stub-resolv.conf") || text.hasSuffix("systemd/resolve/resolv.conf")
            || text.hasSuffix("lib/systemd/resolv.conf")
    }

    /// Sets the resolvers of an interface, in the place of those that it had.
    func set(_ settings: ResolverSettings, through system: ResolverSystem) throws(Failure) {
        let name = settings.interface.string
        switch system {
        case .resolved(let program):
            try run(program, ["dns", name] + settings.servers.map(\.value.description))
            let routed = settings.routedDomains?.map { "~\($0)" } ?? ["~."]
            let domains = settings.searchDomains + routed
            try run(program, ["domain", name] + (domains.isEmpty ? [""] : domains))
            try run(program, ["default-route", name, settings.routedDomains == nil ? "yes" : "no"])
        case .resolvconf(let program, let record):
            // Exclusive, or for its own domains only; before all others.
            let scope = settings.routedDomains == nil ? "-x" : "-p"
            try run(program, ["-a", record, "-m", "0", scope], input: settings.resolverLines)
        case .file:
            let isReadByResolved = runsResolved
            do throws(ResolverFile.Failure) {
                try ResolverFile(paths: paths).set(for: settings.interface.string) { original in
                    guard settings.keepsOptions else { return settings.resolverLines }
                    return ResolverText(original).text(with: settings, isReadByResolved: isReadByResolved)
                }
            } catch { throw Failure(error) }
        }
    }

    /// Takes back what was set for an interface. That the interface is gone is as good.
    func clear(_ interface: InterfaceName, through system: ResolverSystem) throws(Failure) -> [SettingsNote] {
        switch system {
        case .resolved(let program):
            // With the interface resolved forgets about it by itself.
            guard unsafe if_nametoindex(interface.string) != 0 else { return [] }
            try run(program, ["revert", interface.string])
            return []
        case .resolvconf(let program, let record):
            try run(program, ["-d", record, "-f"])
            return []
        case .file:
            do throws(ResolverFile.Failure) {
                let isOurs = try ResolverFile(paths: paths).clear(interface.string)
                return isOurs ? [] : [.resolverFileChangedByOthers]
            } catch { throw Failure(error) }
        }
    }

    private func run(_ program: String, _ arguments: [String], input: String = "") throws(Failure) {
        let outcome: ProgramRun.Outcome
        do throws(SystemCallError) {
            outcome = try ProgramRun.run(program, arguments, input: input)
        } catch { throw Failure(reason: error.description) }
        if outcome.status == 0 { return }
        let line = outcome.complaint.split(separator: "\n").first.map(String.init)
        throw Failure(reason: line ?? "\(program) ended with status \(outcome.status)")
    }

    /// What goes before the names of tunnels, so that Debian's resolvconf puts them where tunnels belong: the first pattern of
    /// its list, if that is a word and a star.
    private func recordPrefix() -> String {
        guard let text = try? WholeFile.read(paths.resolvconfOrder) else { return "" }
        for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
            let word = line.dropLast()
            guard line.last == "*", !word.isEmpty else { continue }
            let isWord = word.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
            if isWord { return "\(word)." }
        }
        return ""
    }
}

extension ResolverConfiguration.Failure {
    /// Why the resolver file was not changed.
    fileprivate init(_ failure: ResolverFile.Failure) {
        reason = failure.description
        if case .systemCall(let error) = failure { errno = error.errno }
    }
}
