internal import CLinux
internal import DNSProxy

/// Why clients cannot be served.
enum ClientSideError: Error, Hashable, Sendable {
    /// No socket listens at an address of the configuration.
    case listening(AddressAndPort, ClientTransport, SystemCallError)
    /// The certificate for clients by TLS, or its key, cannot be used.
    case certificate(SecureCertificateError)
    /// The kernel refuses what a thread needs.
    case system(SystemCallError)
}

extension ClientSideError: CustomStringConvertible {
    /// What to tell the person who wrote the configuration.
    var description: String {
        switch self {
        case .listening(let address, let transport, let error):
            "cannot listen on \(address) by \(transport.name): \(error.reason)"
        case .certificate(let error):
            "dns.secureListen: \(error)"
        case .system(let error):
            "cannot serve DNS clients: \(error)"
        }
    }
}

extension ClientTransport {
    fileprivate var name: String {
        switch self {
        case .udp: "UDP"
        case .tcp: "TCP"
        case .tls: "TLS"
        case .https: "HTTPS"
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
