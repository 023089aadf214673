internal import CLinux
internal import Glibc

/// Tells when a socket's file was removed, or another file took its name (inotify on its folder).
///
/// The folder is watched and not the file: the kernel tells of a removed file only once nobody uses it, and a listening
/// socket uses its own.
struct SocketFileWatch: ~Copyable {
    /// What the event loop watches for reading.
    let descriptor: FileDescriptor
    private let folder: String
    private let file: String

    /// Takes over a descriptor that watches `folder`.
    init(adopting descriptor: consuming FileDescriptor, folder: String, file: String) {
        self.descriptor = descriptor
        self.folder = folder
        self.file = file
    }

    /// Reads what happened in the folder. True when the file is no longer ours.
    func isFileRemoved() throws(SystemCallError) -> Bool {
        var isRemoved = false
        while try readEvents({ mask, name in
            if mask & UInt32(IN_Q_OVERFLOW) != 0 {
                if !fileExists { isRemoved = true }
            } else if mask & (UInt32(IN_IGNORED) | UInt32(IN_UNMOUNT)) != 0 || name == file {
                isRemoved = true
            }
        }) {}
        return isRemoved
    }

    /// Reads a buffer of events; false when there are none.
    private func readEvents(_ body: (UInt32, String) -> Void) throws(SystemCallError) -> Bool {
        let capacity = 4_096
        return try unsafe withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 8) {
            (bytes) throws(SystemCallError) -> Bool in
            let count = unsafe read(descriptor.rawValue, bytes.baseAddress, bytes.count)
            if count <= 0 {
                let error = errno
                if error == EAGAIN { return false }
                if error == EINTR { return true }
                throw SystemCallError("read(inotify)", errno: error)
            }
            // The kernel writes whole events: descriptor, mask, cookie and name length, then the name padded with
            // zeros.
            let headerLength = MemoryLayout<inotify_event>.size
            var offset = 0
            while count - offset >= headerLength {
                let mask = unsafe bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                let nameLength = Int(unsafe bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
                guard nameLength <= count - offset - headerLength else { break }
                let name = unsafe bytes[offset + headerLength..<offset + headerLength + nameLength]
                unsafe body(mask, String(decoding: name.prefix(while: { $0 != 0 }), as: UTF8.self))
                offset += headerLength + nameLength
            }
            return true
        }
    }

    private var fileExists: Bool {
        // A file that cannot be looked at is not known to be gone.
        unsafe access("\(folder)/\(file)", F_OK) == 0 || errno != ENOENT
    }
}
