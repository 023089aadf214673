internal import CLinux
internal import Glibc

/// Tells a service's supervisor how far it is, as sd_notify(3) describes: a datagram to the socket that `NOTIFY_SOCKET` names.
/// Without one nothing happens.
enum ServiceNotification: String {
    case ready = "READY=1"
    case stopping = "STOPPING=1"

    /// Tells it. A supervisor that does not listen is none.
    func send() {
        // Called from the one thread that looks at the environment, which nobody changes.
        guard let value = unsafe getenv("NOTIFY_SOCKET") else { return }
        send(to: unsafe String(cString: value))
    }

    /// Tells whoever has the socket at a path, or with an `@` in front at a name without a file.
    func send(to path: String) {
        let isAbstract = path.hasPrefix("@")
        guard isAbstract || path.hasPrefix("/"), var address = unixAddress(of: path) else { return }
        if isAbstract { address.sun_path.0 = 0 }
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard let socket = try? systemCall("socket", { Glibc.socket(AF_UNIX, type, 0) }) else { return }
        let descriptor = FileDescriptor(adopting: socket)
        let number = descriptor.rawValue
        // The name of an abstract socket is as long as the address says.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.utf8.count + (isAbstract ? 0 : 1))
        let message = rawValue
        unsafe message.utf8Span.span.withUnsafeBytes { bytes in
            // The pointers live for the call, and the lengths are those of what they point at.
            _ = unsafe withSocketAddress(&address) { pointer, _ in
                unsafe sendto(number, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL), pointer, length)
            }
        }
    }
}
