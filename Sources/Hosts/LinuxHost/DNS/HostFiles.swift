internal import ByteAccess
internal import CLinux
internal import DNSMessage
internal import DNSProxy
internal import Glibc
internal import Provider

/// The hosts files that a configuration names. They are looked at every other second, and read again once they have changed and then
/// stayed as they are until the next look: somebody may be writing. What cannot be read leaves what was read before.
struct HostFiles {
    /// How often the files are looked at.
    static let interval = Interval.seconds(2)
    /// The longest file in bytes: what is longer is a list, and belongs into `rules.lists`.
    static let byteLimit = 16 << 20

    /// What tells that a file is another one, or was written to.
    private struct State: Equatable {
        var device: UInt64
        var node: UInt64
        var byteCount: Int64
        /// In nanoseconds since 1970.
        var modified: Int64
        var changed: Int64
    }

    /// What came of a look at the files.
    enum Finding {
        /// They are what they were, or are being written.
        case nothing
        /// They say something else now.
        case changed(HostNames)
        /// They have changed and cannot be read.
        case unreadable(HostFileError)
    }

    /// The paths, in the order in which they are read.
    let paths: [String]
    /// What they said when they were read last.
    private(set) var names: HostNames
    /// When to look again; nil without files.
    private(set) var nextDeadline: Instant?
    private var readStates: [State?]
    private var seenStates: [State?]

    /// Reads files.
    init(reading paths: [String], at now: Instant) throws(HostFileError) {
        self.paths = paths
        let states = paths.map { Self.state(of: $0) }
        names = try Self.read(paths)
        readStates = states
        seenStates = states
        nextDeadline = paths.isEmpty ? nil : now + Self.interval
    }

    /// Looks at the files.
    mutating func look(at now: Instant) -> Finding {
        guard !paths.isEmpty else { return .nothing }
        nextDeadline = now + Self.interval
        let states = paths.map { Self.state(of: $0) }
        defer { seenStates = states }
        guard states != readStates, states == seenStates else { return .nothing }
        // Whatever comes of it, it is not done again before there is another change.
        readStates = states
        do throws(HostFileError) {
            names = try Self.read(paths)
            return .changed(names)
        } catch {
            return .unreadable(error)
        }
    }

    private static func read(_ paths: [String]) throws(HostFileError) -> HostNames {
        var names = HostNames(ownName: ownName)
        for path in paths {
            do throws(ConfigurationFileError) {
                try read(path, into: &names)
            } catch {
                throw HostFileError(path: path, problem: error)
            }
        }
        names.finish()
        return names
    }

    /// Reads a file by pieces: a list of what is to be blocked is longer than all that is kept of it.
    private static func read(_ path: String, into names: inout HostNames) throws(ConfigurationFileError) {
        var isStart = true
        try ConfigurationFile.readLines(path, limit: byteLimit) { lines, fileLength in
            if isStart { names.reserve(byteCount: min(fileLength, byteLimit)) }
            names.add(linesOf: lines, isStart: isStart)
            isStart = false
        }
    }

    /// The machine's name; nil when it is none that DNS can have.
    private static var ownName: DomainName? {
        var buffer = [CChar](repeating: 0, count: 256)
        // One byte less than there are, so that a zero is at the end in any case.
        guard unsafe gethostname(&buffer, buffer.count - 1) == 0 else { return nil }
        let octets = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return try? DomainName(parsing: String(decoding: octets, as: UTF8.self))
    }

    private static func state(of path: String) -> State? {
        var status = stat()
        // The path ends in a zero, and the structure lives for the call.
        guard unsafe stat(path, &status) == 0 else { return nil }
        return State(
            device: UInt64(status.st_dev), node: UInt64(status.st_ino), byteCount: Int64(status.st_size),
            modified: nanoseconds(status.st_mtim), changed: nanoseconds(status.st_ctim))
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

/// Why a hosts file cannot be read.
struct HostFileError: Error, CustomStringConvertible {
    var path: String
    var problem: ConfigurationFileError

    /// The path, and what is wrong with the file.
    var description: String { "\(path) \(problem)" }
}
