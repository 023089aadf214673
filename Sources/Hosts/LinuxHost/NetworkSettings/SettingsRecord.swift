internal import CLinux
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

    /// What has a line together; each object has one of its own.
    private enum CodingKeys: String, CodingKey {
        case interface, index, allotment, originalMTU, wasUp, resolverSystem
    }
}

/// The records of the settings that are in force, each in a file that its owner keeps locked as long as it lives: a file that can
/// be locked was left by one that died. Files carry the number of the network namespace, for names mean nothing beyond it.
///
/// A record is a line of JSON with the number of lines that follow, one for each object. New records are added at the end, and the
/// last whole one counts, so that whoever is killed while writing leaves the one before. Lines have no version: what cannot be read
/// of another one's is passed over.
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

    /// What is in a file.
    struct Contents {
        /// The last record; nil when there is none.
        var record: SettingsRecord?
        /// True when something is there that cannot be read: what it stands for cannot be undone.
        var isIncomplete = false
    }

    /// The first line of a record.
    private struct Heading: Codable {
        var record: SettingsRecord
        /// How many lines follow.
        var objectCount: Int
    }

    /// Reads the last record, as far as it can be read.
    func read() -> Contents {
        let number = descriptor.rawValue
        guard lseek(number, 0, SEEK_SET) == 0, let bytes = try? WholeFile.read(descriptor) else {
            return Contents(isIncomplete: true)
        }
        return Self.contents(of: bytes)
    }

    private static func contents(of bytes: [UInt8]) -> Contents {
        var last = Contents(isIncomplete: !bytes.isEmpty)
        var current = Contents()
        var missing = 0
        // What follows the last end of a line was cut short.
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
        where !line.isEmpty {
            let line = Array(line)
            if let heading = try? JSONLine.decode(Heading.self, from: line) {
                current = Contents(record: heading.record)
                missing = heading.objectCount
            } else if missing > 0 {
                missing -= 1
                if let object = try? JSONLine.decode(SettingsObject.self, from: line) {
                    current.record?.objects.append(object)
                } else {
                    current.isIncomplete = true
                }
            }
            if missing == 0, current.record != nil { last = current }
        }
        return last
    }

    /// Adds a record, which counts from then on.
    func write(_ record: SettingsRecord) throws(SystemCallError) {
        var bytes: [UInt8] = [UInt8(ascii: "\n")]
        do throws(JSONLineError) {
            bytes += try JSONLine.encode(Heading(record: record, objectCount: record.objects.count))
            bytes.append(UInt8(ascii: "\n"))
            for object in record.objects {
                bytes += try JSONLine.encode(object)
                bytes.append(UInt8(ascii: "\n"))
            }
        } catch { throw SystemCallError("write", errno: EINVAL) }
        try WholeFile.write(bytes, to: descriptor)
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

    /// Calls `body` with what is in each file of this network namespace that a process left which is dead, and removes it. The
    /// common lock is held meanwhile.
    static func forEachLeftover(in folder: String, _ body: (Contents) -> Void) throws(SystemCallError) {
        let prefix = try prefix()
        for name in try names(in: folder) where name.hasPrefix(prefix) && name.hasSuffix(suffix) {
            guard let file = try SettingsRecordFile(path: "\(folder)/\(name)", makes: false) else { continue }
            body(file.read())
            file.remove()
        }
    }

    /// True when there is a file of this network namespace, whoever's it is. It makes no folder.
    static func exist(in folder: String) -> Bool {
        guard let prefix = try? prefix(), let names = try? names(in: folder) else { return false }
        return names.contains { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }
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
