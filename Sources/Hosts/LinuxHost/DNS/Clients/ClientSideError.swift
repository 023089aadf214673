internal import CLinux
internal import DNSProxy

/// Why clients cannot be served.
enum ClientSideError: Error, Hashable, Sendable {
    /// No socket listens at an address of the configuration.
    case listening(AddressAndPort, ClientTransport, SystemCallError)
    /// The kernel refuses what a thread needs.
    case system(SystemCallError)
}

extension ClientSideError: CustomStringConvertible {
    /// What to tell the person who wrote the configuration.
    var description: String {
        switch self {
        case .listening(let address, let transport, let error):
            "cannot listen on \(address) by \(transport == .udp ? "UDP" : "TCP"): \(error.reason)"
        case .system(let error):
            "cannot serve DNS clients: \(error)"
        }
    }
}

extension SystemCallError {
    /// The system's message alone.
    fileprivate var reason: String {
        // The function returns a static string or null.
        guard let message = unsafe clinux_error_description(errno) else { return "error \(errno)" }
        return unsafe String(cString: message)
    }
}
