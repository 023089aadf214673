import SecureStream
import TestSupport

extension Certificates {
    /// The server that has this certificate and its key.
    func server(_ name: String, protocols: [String]) throws -> TLSServer {
        try TLSServer(
            TLSServerContext(certificateFile: path("\(name).pem"), keyFile: path("\(name).key"), protocols: protocols))
    }

    /// Trusts our own authority, with pins or without.
    func authority(_ pins: PublicKeyPins? = nil) -> TrustPolicy {
        .authorities(.file(path("authority.pem")), pins: pins)
    }

    /// A client for `dns.example`.
    func client(_ policy: TrustPolicy, protocols: [String]) throws -> TLSClient {
        try TLSClient(TLSClientContext(policy, protocols: protocols), identity: .name("dns.example"))
    }

    /// Two pins, neither of which is of any key here.
    static var foreignPins: PublicKeyPins? {
        PublicKeyPins(["A", "B"].compactMap { PublicKeyPin(parsing: String(repeating: $0, count: 42) + "A=") })
    }
}
