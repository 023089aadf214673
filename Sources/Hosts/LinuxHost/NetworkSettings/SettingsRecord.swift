internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// What has to be known to undo the settings of an interface.
struct SettingsRecord: Hashable, Codable, Sendable {
    /// The interface.
    var interface: InterfaceName
    /// Its index: what has the same name later may be another one.
    var index: UInt32
    /// What the tunnel has for itself, once it needs a table of its own.
    var allotment: RoutingAllotment?
    /// What is in force, or may be, in the order that it was added.
    var objects: [SettingsObject] = []
    /// The MTU in bytes that the interface had.
    var originalMTU: Int
    /// True when the interface was up before.
    var wasUp: Bool
    /// Who was told about resolvers.
    var resolverSystem: ResolverSystem?
}

/// The records of the settings that are in force, each in a file that its owner keeps locked as long as it lives: a file that can
/// be locked was left by one that died. Files carry the number of the network namespace, for names mean nothing beyond it.
///
/// Records are lines of JSON at the end of which new ones are added; the last whole line counts, so that whoever is killed while
/// writing leaves the one before.
struct SettingsRecordFile: ~Copyable {
    private let descriptor: FileDescriptor
    private let path: String

    /// The name of the lock that whoever changes settings holds meanwhile, so that two do not choose the same table.
    private static let commonLockName = "settings.lock"
    private static let suffix = ".settings"

    /// Opens the file of an interface and locks it; nil when a process that lives has it.
    init?(for interface: InterfaceName, in folder: String) throws(SystemCallError) {
        try self.init(path: "\(folder)/\(try Self.prefix())\(interface)\(Self.suffix)", makes: true)
    }

    private init?(path: String, makes: Bool) throws(SystemCallError) {
        let flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (makes ? O_CREAT : 0)
        let descriptor = FileDescriptor(adopting: try systemCall("open") { unsafe open(path, flags, 0o600) })
        let number = descriptor.rawValue
        do throws(SystemCallError) {
            _ = try systemCall("flock") { flock(number, LOCK_EX | LOCK_NB) }
        } catch {
            if error.errno == EWOULDBLOCK { return nil }
            throw error
        }
        self.descriptor = descriptor
        self.path = path
    }

    /// The last record; nil when there is none.
    func read() -> SettingsRecord? {
        let number = descriptor.rawValue
        guard lseek(number, 0, SEEK_SET) == 0, let bytes = try? WholeFile.read(descriptor) else { return nil }
        for line in bytes.split(separator: UInt8(ascii: "\n")).reversed() {
            if let record = try? JSONDecoder().decode(SettingsRecord.self, from: Data(line)) { return record }
        }
        return nil
    }

    /// Adds a record, which counts from then on.
    func write(_ record: SettingsRecord) throws(SystemCallError) {
        guard let data = try? JSONEncoder().encode(record) else { throw SystemCallError("write", errno: EINVAL) }
        try WholeFile.write([UInt8(ascii: "\n")] + data + [UInt8(ascii: "\n")], to: descriptor)
    }

    /// Removes the file: nothing is in force any more.
    consuming func remove() {
        unsafe unlink(path)
    }

    /// Runs `body` while no other process changes settings.
    static func exclusively<Value>(
        in folder: String, _ body: () throws(InterfaceSettingsError) -> Value
    ) throws(InterfaceSettingsError) -> Value {
        let lock = try commonLock(in: folder)
        // The lock ends with its descriptor.
        return try withExtendedLifetime(lock) { _ throws(InterfaceSettingsError) in try body() }
    }

    private static func commonLock(in folder: String) throws(InterfaceSettingsError) -> FileDescriptor {
        do throws(SystemCallError) {
            try WholeFile.makeFolder(folder)
            let path = "\(folder)/\(commonLockName)"
            let lock = FileDescriptor(
                adopting: try systemCall("open") { unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) }
            )
            let number = lock.rawValue
            _ = try systemCall("flock") { flock(number, LOCK_EX) }
            return lock
        } catch { throw .record(error) }
    }

    /// Calls `body` with each record of this network namespace that a process left which is dead, and removes it. The common lock
    /// is held meanwhile.
    static func forEachLeftover(in folder: String, _ body: (SettingsRecord) -> Void) throws(SystemCallError) {
        let prefix = try prefix()
        for name in try names(in: folder) where name.hasPrefix(prefix) && name.hasSuffix(suffix) {
            guard let file = try SettingsRecordFile(path: "\(folder)/\(name)", makes: false) else { continue }
            if let record = file.read() { body(record) }
            file.remove()
        }
    }

    /// What the names of this network namespace's files begin with.
    static func prefix() throws(SystemCallError) -> String {
        var status = stat()
        // The pointer lives for the call.
        _ = try systemCall("stat") { unsafe stat("/proc/thread-self/ns/net", &status) }
        return "\(status.st_ino)-"
    }

    private static func names(in folder: String) throws(SystemCallError) -> [String] {
        guard let stream = unsafe opendir(folder) else { throw SystemCallError("opendir", errno: errno) }
        // Open until the end; the entry is good until the next call.
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            names.append(
                unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                    unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
                })
        }
        return names
    }
}
