public import IPPacket
internal import PacketTunnel

/// An address and a port of either transport.
public struct AddressAndPort: Hashable, Sendable {
    /// The address.
    public var address: IPAddress
    /// The port, which is not 0.
    public var port: UInt16

    /// A port at an address.
    public init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// The address and port that `text` spells, 127.0.0.1:53 or [::1]:53; nil for anything else. An address alone, IPv6 without
    /// brackets, means `defaultPort`, when there is one.
    public init?(parsing text: String, defaultPort: UInt16? = nil) {
        if let defaultPort, let address = try? IPAddress(parsing: text) {
            self.init(address: address, port: defaultPort)
            return
        }
        guard let (host, port) = HostReference.split(text[...]), let port, case .address(let address) = host else {
            return nil
        }
        self.init(address: address, port: port)
    }
}

extension AddressAndPort: CustomStringConvertible {
    /// The text that ``init(parsing:defaultPort:)`` reads.
    public var description: String {
        switch address {
        case .v4(let address): "\(address):\(port)"
        case .v6(let address): "[\(address)]:\(port)"
        }
    }
}

/// The host of a URL.
public enum HostReference: Hashable, Sendable {
    /// A name in lower case.
    case name(String)
    /// An address.
    case address(IPAddress)
}

extension HostReference {
    /// The host and the port of `text`: `dns.example:853`, `192.0.2.1`, `[2001:db8::1]:53`; nil for anything else, and for
    /// port 0.
    static func split(_ text: Substring) -> (host: HostReference, port: UInt16?)? {
        let end: Substring.Index
        let host: HostReference
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]"),
                let address = try? IPv6Address(parsing: text[text.index(after: text.startIndex)..<bracket])
            else { return nil }
            end = text.index(after: bracket)
            host = .address(.v6(address))
        } else {
            end = text.firstIndex(of: ":") ?? text.endIndex
            if let address = try? IPv4Address(parsing: text[..<end]) {
                host = .address(.v4(address))
            } else if HostName.isValid(text[..<end]) {
                host = .name(HostName.canonical(text[..<end]))
            } else {
                return nil
            }
        }
        if end == text.endIndex { return (host, nil) }
        let digits = text[end...].dropFirst()
        guard text[end] == ":", digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let port = UInt16(digits), port > 0
        else { return nil }
        return (host, port)
    }
}

/// Who a server that is spoken to by TLS has to prove to be.
public struct TLSTrust: Equatable, Sendable {
    /// The name that its certificate must have; nil for the host of the URL.
    public var serverName: String?
    /// The keys of which one must be in its chain of certificates; none, or two at least.
    public var pins: [PublicKeyPin] = []
    /// True when the pins alone decide, and neither names, nor times, nor authorities.
    public var isPinOnly = false
    /// The path of a file with the authorities to trust instead of the system's.
    public var authorityFile: String?

    /// The system's authorities and the host's name.
    public init() {}
}

/// The SHA-256 hash of a public key as it stands in certificates (RFC 7858 §4.2, RFC 7469 §2.4).
public struct PublicKeyPin: Hashable, Sendable {
    /// The 32 bytes of the hash.
    public var sha256: [UInt8]
}
