internal import CLinux
internal import Glibc

/// The file of a control socket that is ours.
struct ControlSocketFile {
    /// The folder that it is in.
    var folder: String
    /// Its name there.
    var file: String
    /// Which file it was when it was made.
    var identity: FileIdentity
}

extension PrivilegedService {
    /// Listens on an interface's control socket: replaces a file that no process answers on, refuses one that lives.
    mutating func openControlSocket(for name: InterfaceName) throws(PrivilegedFailure) -> PrivilegedExchange {
        // Everything that this folder holds is for its owner alone.
        try openSocket(in: controlSocketFolder, file: "\(name).sock", folderMode: 0o700)
    }

    /// Listens for the messages of programs; the file is for its owner alone.
    mutating func openMessageSocket(at path: String) throws(PrivilegedFailure) -> PrivilegedExchange {
        guard let slash = path.lastIndex(of: "/"), path.hasPrefix("/") else {
            throw .systemCall(SystemCallError("bind(AF_UNIX)", errno: EINVAL))
        }
        let folder = slash == path.startIndex ? "/" : String(path[..<slash])
        return try openSocket(in: folder, file: String(path[path.index(after: slash)...]), folderMode: 0o755)
    }

    private mutating func openSocket(
        in folder: String, file: String, folderMode: mode_t
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        // A folder that exists keeps its permissions.
        if unsafe mkdir(folder, folderMode) != 0 && errno != EEXIST {
            throw .systemCall(SystemCallError("mkdir", errno: errno))
        }
        let folderDescriptor = FileDescriptor(
            adopting: try privilegedCall("open(O_DIRECTORY)") {
                unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            })
        // Two daemons that start at once must not take each other's fresh socket for a stale one.
        let folderNumber = folderDescriptor.rawValue
        _ = try privilegedCall("flock") { flock(folderNumber, LOCK_EX) }

        let path = "\(folder)/\(file)"
        guard var address = unixAddress(of: path) else {
            throw .systemCall(SystemCallError("bind(AF_UNIX)", errno: ENAMETOOLONG))
        }
        try removeStaleSocket(at: path, address: &address)
        let watch = try watchFolder(folder)
        let listener = try makeUNIXSocket()
        let number = listener.rawValue
        // The file gets the mode of the socket itself, less the umask: nobody else can connect at any moment.
        _ = try privilegedCall("fchmod") { fchmod(number, 0o700) }
        _ = try privilegedCall("bind(AF_UNIX)") {
            unsafe withSocketAddress(&address) { unsafe bind(number, $0, $1) }
        }
        _ = try privilegedCall("listen") { listen(number, 128) }
        return try keep(listener, watch: watch, folder: folder, file: file)
    }

    /// Takes over an inherited socket, if it listens and has a file.
    mutating func adoptControlSocket(_ number: Int32) throws(PrivilegedFailure) -> PrivilegedExchange {
        var isListening: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        var address = sockaddr_un()
        var addressLength = socklen_t(MemoryLayout<sockaddr_un>.size)
        // The pointers live for each call and the lengths are those of what they point at.
        guard unsafe getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) == 0, isListening == 1,
            unsafe withSocketAddress(&address, { pointer, _ in unsafe getsockname(number, pointer, &addressLength) })
                == 0,
            address.sun_family == sa_family_t(AF_UNIX)
        else { throw .unsuitableDescriptor }
        let path = pathString(of: address)
        guard let slash = path.lastIndex(of: "/") else { throw .unsuitableDescriptor }
        let listener = FileDescriptor(adopting: number)
        do throws(SystemCallError) {
            try listener.setNonBlocking()
            try listener.setCloseOnExec()
        } catch { throw .systemCall(error) }
        let folder = String(path[..<slash])
        return try keep(
            listener, watch: try watchFolder(folder), folder: folder, file: String(path[path.index(after: slash)...]))
    }

    /// Removes the file of a control socket if it is still the one that was made.
    mutating func removeControlSocket(_ identifier: ControlSocketIdentifier) throws(PrivilegedFailure)
        -> PrivilegedExchange
    {
        guard let socket = controlSockets.removeValue(forKey: identifier) else { throw .unknownIdentifier }
        let path = "\(socket.folder)/\(socket.file)"
        if fileIdentity(at: path) == socket.identity, unsafe unlink(path) != 0, errno != ENOENT {
            throw .systemCall(SystemCallError("unlink", errno: errno))
        }
        return PrivilegedExchange(.done)
    }

    private mutating func keep(
        _ listener: consuming FileDescriptor, watch: consuming FileDescriptor, folder: String, file: String
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        guard let identity = fileIdentity(at: "\(folder)/\(file)") else { throw .unsuitableDescriptor }
        let identifier = ControlSocketIdentifier(rawValue: makeIdentifier())
        controlSockets[identifier] = ControlSocketFile(folder: folder, file: file, identity: identity)
        var descriptors = DescriptorList()
        descriptors.append(listener)
        descriptors.append(watch)
        return PrivilegedExchange(.controlSocket(identifier, folder: folder, file: file), descriptors)
    }

    /// Removes what a process that ended without cleaning up left behind.
    private func removeStaleSocket(at path: String, address: inout sockaddr_un) throws(PrivilegedFailure) {
        guard fileIdentity(at: path) != nil else { return }
        let probe = try makeUNIXSocket()
        let result = unsafe withSocketAddress(&address) { unsafe connect(probe.rawValue, $0, $1) }
        // A full backlog is a live process too.
        if result == 0 || errno == EAGAIN { throw .controlSocketInUse }
        if errno == ENOENT { return }
        // Only a socket that nobody listens on is stale: anything else is not ours to remove.
        guard errno == ECONNREFUSED, isSocket(path) else { throw .systemCall(SystemCallError("connect", errno: errno)) }
        if unsafe unlink(path) != 0 && errno != ENOENT { throw .systemCall(SystemCallError("unlink", errno: errno)) }
    }

    private func makeUNIXSocket() throws(PrivilegedFailure) -> FileDescriptor {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        return FileDescriptor(adopting: try privilegedCall("socket(AF_UNIX)") { socket(AF_UNIX, type, 0) })
    }

    /// An inotify descriptor that tells of files which leave a folder or are replaced in it.
    private func watchFolder(_ folder: String) throws(PrivilegedFailure) -> FileDescriptor {
        let descriptor = FileDescriptor(
            adopting: try privilegedCall("inotify_init1") {
                inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
            })
        let number = descriptor.rawValue
        let mask = UInt32(IN_DELETE) | UInt32(IN_MOVED_FROM) | UInt32(IN_MOVED_TO) | UInt32(IN_ONLYDIR)
        _ = try privilegedCall("inotify_add_watch") { unsafe inotify_add_watch(number, folder, mask) }
        return descriptor
    }

    private func fileIdentity(at path: String) -> FileIdentity? {
        var status = stat()
        // The pointer lives for the call. A symbolic link is not followed: it is not what we made.
        return unsafe lstat(path, &status) == 0 ? FileIdentity(device: status.st_dev, node: status.st_ino) : nil
    }

    private func isSocket(_ path: String) -> Bool {
        var status = stat()
        // The pointer lives for the call.
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }
}

/// The socket address of a path; nil when it is too long for one.
func unixAddress(of path: String) -> sockaddr_un? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { bytes -> Bool in
        // Room for the terminator, which is there already: the structure starts out as zeros.
        guard path.utf8.count < bytes.count else { return false }
        unsafe bytes.copyBytes(from: path.utf8)
        return true
    }
    return fits ? address : nil
}

/// The path in a socket address; empty when it has none.
func pathString(of address: sockaddr_un) -> String {
    unsafe withUnsafeBytes(of: address.sun_path) { bytes in
        unsafe String(decoding: bytes.prefix(while: { $0 != 0 }), as: UTF8.self)
    }
}
