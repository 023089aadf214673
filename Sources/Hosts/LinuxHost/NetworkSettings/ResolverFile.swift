internal import CLinux
internal import Glibc

/// The file that the C library reads resolvers from, shared by the tunnels that write it: what was there first is kept until the
/// last of them is done, and each tunnel's lines come back when those after it go.
///
/// A file is written in place, so that it stays the same file, with its owner and mode; in a container it cannot be replaced
/// anyway. A symbolic link is moved aside and moved back, so that what it points to is never touched.
struct ResolverFile {
    /// Where things are.
    let paths: SettingsPaths

    /// What has to be known to put things back. It is in a file, for it outlives each tunnel, and the machine's going down.
    private struct Record: Codable {
        /// Which time the machine was up when it was written: what it says of tunnels holds for that time.
        var boot: String
        /// What was there before the first tunnel.
        var original: Original
        /// The lines of each tunnel, the one that came last at the end.
        var tunnels: [Lines]
        /// What we wrote last, and what before that: one of them is there if nobody else wrote.
        var written: [[UInt8]]

        struct Lines: Codable {
            var key: String
            var text: String
        }
    }

    private enum Original: Codable {
        case missing
        /// A file with these bytes, and the seconds and nanoseconds of its last change.
        case file(bytes: [UInt8], seconds: Int, nanoseconds: Int)
        /// A symbolic link, which is aside now.
        case link
    }

    /// Why the file was not changed.
    enum Failure: Error, CustomStringConvertible {
        /// A system call failed.
        case systemCall(SystemCallError)
        /// The record at this path is not one of this version: what was there first is in it.
        case unreadableRecord(path: String)

        var description: String {
            switch self {
            case .systemCall(let error): error.description
            case .unreadableRecord(let path):
                "\(path), which says what the resolver file was, cannot be read: put the resolver file right and remove it"
            }
        }
    }

    private var store: ResolverRecordStore { ResolverRecordStore(paths: paths) }
    private var asidePath: String { "\(paths.resolverFile).before-sluice" }

    /// Puts the lines of a tunnel into the file, in the place of those that it had.
    ///
    /// - Parameter lines: Makes the lines of what was in the file before the first tunnel.
    func set(for key: String, _ lines: ([UInt8]) -> String) throws(Failure) {
        let known: Record? = try store.read()
        do throws(SystemCallError) {
            var record: Record
            if let known, condition(known) != .foreign {
                record = known
            } else {
                if let known { forget(known) }
                record = Record(boot: "", original: try look(), tunnels: [], written: [])
            }
            let boot = ResolverRecordStore.boot
            if record.boot != boot { record.tunnels.removeAll() }
            record.boot = boot
            record.tunnels.removeAll { $0.key == key }
            record.tunnels.append(Record.Lines(key: key, text: lines(originalBytes(record))))
            try write(record)
        } catch { throw .systemCall(error) }
    }

    /// Takes the lines of a tunnel out; with the last one, puts back what was there before. False when somebody else changed the
    /// file since: it stays as it is.
    func clear(_ key: String) throws(Failure) -> Bool {
        guard var record: Record = try store.read() else { return true }
        record.tunnels.removeAll { $0.key == key }
        return try settle(record)
    }

    /// Puts back what was there before tunnels that were there when the machine went down without an end: the file outlives that,
    /// and what else they did does not. False when there is nothing of them.
    func clearAfterReboot() throws(Failure) -> Bool {
        guard var record: Record = try store.read(), record.boot != ResolverRecordStore.boot else { return false }
        record.tunnels.removeAll()
        return try settle(record)
    }

    /// True when there is something for ``clearAfterReboot()``.
    var isLeftByReboot: Bool {
        guard let record: Record = try? store.read() else { return false }
        return record.boot != ResolverRecordStore.boot
    }

    /// Brings the file to what is left of a record. False when it is somebody else's.
    private func settle(_ record: Record) throws(Failure) -> Bool {
        switch condition(record) {
        case .foreign:
            // Whoever wrote it is its owner now.
            forget(record)
            return false
        case .untouched: store.remove()
        case .ours:
            do throws(SystemCallError) {
                if !record.tunnels.isEmpty {
                    try write(record)
                } else if isUnchanged(record) {
                    store.remove()
                } else {
                    try restore(record)
                }
            } catch { throw .systemCall(error) }
        }
        return true
    }

    /// What programs read before the first tunnel; nothing when that cannot be read.
    private func originalBytes(_ record: Record) -> [UInt8] {
        switch record.original {
        case .missing: []
        case .file(let bytes, _, _): bytes
        case .link: (try? WholeFile.read(isLink(asidePath) ? asidePath : paths.resolverFile)) ?? []
        }
    }

    /// True when a file is as it was: one that could not be written, for it is immutable or others may not.
    private func isUnchanged(_ record: Record) -> Bool {
        guard case .file(let bytes, let seconds, let nanoseconds) = record.original,
            case .file(let now, let nowSeconds, let nowNanoseconds)? = try? look()
        else { return false }
        return now == bytes && nowSeconds == seconds && nowNanoseconds == nanoseconds
    }

    private func restore(_ record: Record) throws(SystemCallError) {
        switch record.original {
        case .missing:
            if unsafe unlink(paths.resolverFile) != 0, errno != ENOENT { throw SystemCallError("unlink", errno: errno) }
        case .link: _ = try systemCall("rename") { unsafe rename(asidePath, paths.resolverFile) }
        case .file(let bytes, let seconds, let nanoseconds):
            try overwrite(bytes)
            // UTIME_OMIT: the time of the last access stays.
            let omitted = 0x3FFF_FFFE
            var times = [
                timespec(tv_sec: 0, tv_nsec: omitted), timespec(tv_sec: seconds, tv_nsec: nanoseconds),
            ]
            // The pointers live for the call, and there are two times. Without them the file is as good.
            _ = unsafe utimensat(AT_FDCWD, paths.resolverFile, &times, 0)
        }
        store.remove()
    }

    private func forget(_ record: Record) {
        if case .link = record.original { unsafe unlink(asidePath) }
        store.remove()
    }

    /// Records what is going to be written, then writes it: whoever finds the record can put things back.
    private func write(_ record: Record) throws(SystemCallError) {
        var record = record
        let text =
            "# Written by sluice. What was here before comes back when it stops.\n" + (record.tunnels.last?.text ?? "")
        record.written = record.written.suffix(1) + [Array(text.utf8)]
        try store.write(record)
        // A link goes aside first: nobody may write through it.
        if case .link = record.original, isLink(paths.resolverFile) {
            _ = try systemCall("rename") { unsafe rename(paths.resolverFile, asidePath) }
        }
        try overwrite(Array(text.utf8))
    }

    private func look() throws(SystemCallError) -> Original {
        var status = stat()
        do throws(SystemCallError) {
            // The pointer lives for the call.
            _ = try systemCall("lstat") { unsafe lstat(paths.resolverFile, &status) }
        } catch {
            if error.errno == ENOENT { return .missing }
            throw error
        }
        if status.st_mode & S_IFMT == S_IFLNK { return .link }
        return .file(
            bytes: try WholeFile.read(paths.resolverFile), seconds: status.st_mtim.tv_sec,
            nanoseconds: status.st_mtim.tv_nsec)
    }

    /// Whose work the file is.
    private enum Condition {
        /// What was there before us.
        case untouched
        /// Ours, whole or up to where we were interrupted.
        case ours
        /// That of somebody who came after us.
        case foreign
    }

    private func condition(_ record: Record) -> Condition {
        var status = stat()
        guard unsafe lstat(paths.resolverFile, &status) == 0 else {
            switch record.original {
            case .missing: return .ours
            case .link: return isLink(asidePath) ? .ours : .foreign
            case .file: return .foreign
            }
        }
        if status.st_mode & S_IFMT == S_IFLNK {
            if case .link = record.original, !isLink(asidePath) { return .untouched }
            return .foreign
        }
        guard let bytes = try? WholeFile.read(paths.resolverFile) else { return .foreign }
        if case .file(let original, _, _) = record.original {
            if bytes == original { return .ours }
            // Written, not cut yet.
            if record.written.contains(where: { bytes == $0 + original.dropFirst($0.count) }) { return .ours }
            return record.written.contains(bytes) ? .ours : .foreign
        }
        return bytes.isEmpty || record.written.contains(bytes) ? .ours : .foreign
    }

    private func isLink(_ path: String) -> Bool {
        var status = stat()
        // The pointer lives for the call.
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    private func overwrite(_ bytes: [UInt8]) throws(SystemCallError) {
        let descriptor = FileDescriptor(
            adopting: try systemCall("open") {
                unsafe open(paths.resolverFile, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
            })
        try WholeFile.write(bytes, to: descriptor)
        let number = descriptor.rawValue
        _ = try systemCall("ftruncate") { ftruncate(number, bytes.count) }
    }
}
