internal import ByteAccess
internal import EncryptedDNS
internal import IPPacket
internal import Provider
internal import SecureStream

/// What is spoken on connections to an upstream, with what each of them needs.
enum StreamProtocol: Sendable {
    /// TCP (RFC 7766).
    case tcp
    /// TLS (RFC 7858).
    case tls(TLSClientContext, ServerIdentity)
    /// HTTPS (RFC 8484).
    case https(TLSClientContext, ServerIdentity, DoHTarget)

    /// What the configuration of an upstream says. Reads the authorities.
    init(_ upstream: DNSUpstreamConfiguration) throws(ServerStartError) {
        switch upstream.transport {
        case .udp, .tcp: self = .tcp
        case .tls:
            self = .tls(try Self.context(upstream, protocols: ["dot"]), Self.identity(of: upstream))
        case .https(let path, let method):
            var authority =
                switch upstream.host {
                case .name(let name): name
                case .address(.v4(let address)): "\(address)"
                case .address(.v6(let address)): "[\(address)]"
                }
            if upstream.port != 443 { authority += ":\(upstream.port)" }
            guard let target = DoHTarget(authority: authority, path: path, method: method == .get ? .get : .post) else {
                throw ServerStartError(upstream: upstream.name, reason: .impossiblePath)
            }
            self = .https(try Self.context(upstream, protocols: ["h2"]), Self.identity(of: upstream), target)
        }
    }

    /// True when nobody on the way can read what is spoken.
    var isEncrypted: Bool {
        if case .tcp = self { false } else { true }
    }

    private static func context(
        _ upstream: DNSUpstreamConfiguration, protocols: [String]
    ) throws(ServerStartError) -> TLSClientContext {
        let trust = upstream.trust
        let hashes = trust.pins.compactMap { SecureStream.PublicKeyPin(hash: $0.sha256.span.octets) }
        let pins = PublicKeyPins(hashes)
        guard pins != nil || trust.pins.isEmpty && !trust.isPinOnly else {
            throw ServerStartError(upstream: upstream.name, reason: .tooFewPins)
        }
        let policy: TrustPolicy
        if trust.isPinOnly, let pins {
            policy = .pinsOnly(pins)
        } else {
            policy = .authorities(trust.authorityFile.map { .file($0) } ?? .system, pins: pins)
        }
        do throws(TLSError) {
            return try TLSClientContext(policy, protocols: protocols)
        } catch {
            let isFile = error == .unreadableAuthorities
            throw ServerStartError(upstream: upstream.name, reason: isFile ? .unreadableAuthorities : .noTLS)
        }
    }

    private static func identity(of upstream: DNSUpstreamConfiguration) -> ServerIdentity {
        if let name = upstream.trust.serverName { return .name(name) }
        return switch upstream.host {
        case .name(let name): .name(name)
        case .address(let address): .address(address)
        }
    }

    /// The begin of a connection, once TCP has one.
    ///
    /// - Parameter session: What an earlier connection left.
    func makeConnection(
        resuming session: consuming TLSSession?, at now: Instant
    ) throws(ConnectionError) -> any DNSConnection & ~Copyable {
        switch self {
        case .tcp: return StreamConnection(PlainStream(), at: now)
        case .tls(let context, let identity):
            return DoTConnection(try Self.makeStream(context, identity, session), at: now)
        case .https(let context, let identity, let target):
            return try DoHConnection(try Self.makeStream(context, identity, session), target: target, at: now)
        }
    }

    private static func makeStream(
        _ context: TLSClientContext, _ identity: ServerIdentity, _ session: consuming TLSSession?
    ) throws(ConnectionError) -> TLSClient {
        do throws(TLSError) {
            return try TLSClient(context, identity: identity, resuming: session)
        } catch {
            throw .tls(error)
        }
    }
}

/// Why an upstream cannot be made use of at all.
struct ServerStartError: Error, Equatable, Sendable {
    /// What is wrong.
    enum Reason: Sendable {
        /// The file with authorities, or that of the system, cannot be read, or holds none.
        case unreadableAuthorities
        /// There are pins, but fewer than two different ones.
        case tooFewPins
        /// The URL's path holds what no path can have.
        case impossiblePath
        /// OpenSSL lacks something.
        case noTLS
    }

    /// What the configuration calls the upstream.
    let upstream: String
    /// What is wrong.
    let reason: Reason
}

extension ServerStartError: CustomStringConvertible {
    /// One line for who runs the program.
    var description: String {
        let what =
            switch reason {
            case .unreadableAuthorities: "there are no certificates of authorities that can be read"
            case .tooFewPins: "two pins are needed, so that a key can be replaced"
            case .impossiblePath: "its path cannot be asked for by HTTP"
            case .noTLS: "TLS is not available"
            }
        return "the upstream \"\(upstream)\" cannot be used: \(what)"
    }
}
