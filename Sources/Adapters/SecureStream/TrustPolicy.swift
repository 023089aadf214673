public import IPPacket

/// When a server's certificate is trusted.
public struct TrustPolicy: Hashable, Sendable {
    /// Who vouches for servers.
    public enum Authorities: Hashable, Sendable {
        /// Those that the system trusts.
        case system
        /// Those in a file in PEM form, and no others.
        case file(String)
    }

    /// How keys and authorities go together.
    enum Rule: Hashable, Sendable {
        /// An authority vouches, and the certificate is for the server. With pins, a key of the chain that was verified is pinned too.
        case authorities(Authorities, PublicKeyPins?)
        /// The server's key is pinned, or that of an issuer whose signatures lead down to it. Names, times and authorities do not count.
        case pinsOnly(PublicKeyPins)
    }

    let rule: Rule

    /// An authority has to vouch for the server, and a key has to be pinned when there are pins.
    public static func authorities(_ authorities: Authorities = .system, pins: PublicKeyPins? = nil) -> Self {
        Self(rule: .authorities(authorities, pins))
    }

    /// Nothing but the pins counts.
    public static func pinsOnly(_ pins: PublicKeyPins) -> Self {
        Self(rule: .pinsOnly(pins))
    }
}

/// Who a server has to prove to be.
public enum ServerIdentity: Hashable, Sendable {
    /// A host name in ASCII, which goes into the ClientHello too.
    case name(String)
    /// An address, which the certificate has to name; there is no SNI for it (RFC 6066 §3).
    case address(IPAddress)

    /// The name without the dot of the root; nil for an address.
    var hostName: String? {
        get throws(TLSError) {
            guard case .name(let name) = self else { return nil }
            let host = name.hasSuffix(".") ? String(name.dropLast()) : name
            let isValid = host.utf8.allSatisfy {
                0x21...0x7E ~= $0 && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "*")
            }
            guard 1...253 ~= host.utf8.count, isValid else { throw .invalidServerName }
            return host
        }
    }
}
