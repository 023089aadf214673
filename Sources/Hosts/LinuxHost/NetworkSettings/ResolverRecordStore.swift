internal import CLinux
internal import Glibc

/// Where the record is kept of what the resolver file was: in a folder that outlives the machine's going down, as the file does; where
/// that cannot be written, with the other records.
struct ResolverRecordStore {
    /// Where things are.
    let paths: SettingsPaths

    /// What tells the times apart that the machine was up: the kernel draws it when it starts.
    static var boot: String {
        String(decoding: (try? WholeFile.read("/proc/sys/kernel/random/boot_id")) ?? [], as: UTF8.self)
    }

    private var places: [String] { [paths.lastingFolder, paths.stateFolder].map { "\($0)/resolver-file" } }

    /// The record; nil when there is none.
    func read<Record: Decodable>() throws(ResolverFile.Failure) -> Record? {
        for path in places {
            let bytes: [UInt8]
            do throws(SystemCallError) { bytes = try WholeFile.read(path) } catch {
                if error.errno == ENOENT { continue }
                throw .systemCall(error)
            }
            do throws(JSONLineError) { return try JSONLine.decode(Record.self, from: bytes) } catch {
                throw .unreadableRecord(path: path)
            }
        }
        return nil
    }

    /// Keeps a record in the place of the one before. It is on the disk when this returns.
    func write(_ record: some Encodable) throws(SystemCallError) {
        let data: [UInt8]
        do throws(JSONLineError) { data = try JSONLine.encode(record) } catch {
            // A resolver file is small: C libraries read three servers of it.
            throw SystemCallError("write", errno: EFBIG)
        }
        do throws(SystemCallError) {
            try write(data, in: paths.lastingFolder)
        } catch { try write(data, in: paths.stateFolder) }
    }

    /// Forgets the record.
    func remove() {
        for path in places { unsafe unlink(path) }
    }

    private func write(_ data: [UInt8], in folder: String) throws(SystemCallError) {
        try WholeFile.makeFolder(folder)
        let path = "\(folder)/resolver-file"
        let fresh = "\(path).new"
        do {
            let descriptor = FileDescriptor(
                adopting: try systemCall("open") {
                    unsafe open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
                })
            try WholeFile.write(data, to: descriptor)
            let number = descriptor.rawValue
            _ = try systemCall("fsync") { fsync(number) }
        }
        _ = try systemCall("rename") { unsafe rename(fresh, path) }
    }
}
