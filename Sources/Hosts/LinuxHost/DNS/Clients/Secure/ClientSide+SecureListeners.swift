internal import DNSProxy
internal import Glibc
internal import Provider
internal import SecureStream

extension ClientSide {
    /// Listeners for TLS that a configuration asks for. Those that are new are open and not watched yet.
    struct OpenedSecureListeners {
        /// All of them in the order of the configuration, with what is spoken there from now on.
        fileprivate var entries: [(listener: SecureListener, service: SecureService)] = []
        /// Those that share their ports with new ones as long as both are open.
        fileprivate var overlapping: [SecureListener] = []
        /// How many clients may shake hands there.
        fileprivate var limits = HandshakeLimits()

        /// The listeners.
        var listeners: [SecureListener] { entries.map(\.listener) }
    }

    /// Opens sockets at all addresses of a configuration. They are not watched yet.
    static func open(
        _ configuration: DNSConfiguration, shared: SharedProxy, log: Log
    ) throws(ClientSideError) -> ClientSide {
        var clients = try ClientSide(
            listen: configuration.listen, clientIdle: configuration.clientIdle, workers: configuration.workers,
            shared: shared, log: log)
        let opened = try clients.openSecureListeners(for: configuration.secureListen)
        clients.secureListeners = opened.listeners
        clients.streams.handshakeLimits = opened.limits
        return clients
    }

    /// Reads certificate and key, and opens sockets at addresses where there are none yet. When it throws, everything is as it was.
    mutating func openSecureListeners(
        for configuration: SecureListenConfiguration?
    ) throws(ClientSideError) -> OpenedSecureListeners {
        var opened = OpenedSecureListeners()
        guard let configuration else { return opened }
        opened.limits = HandshakeLimits(
            all: configuration.maximumHandshakes, perClient: configuration.maximumHandshakesPerClient)
        var wanted: [(service: SecureService, address: AddressAndPort)] = []
        for (kind, addresses) in [(SecureService.Kind.tls, configuration.tls), (.https, configuration.https)]
        where !addresses.isEmpty {
            let service = try makeService(kind, configuration)
            wanted += addresses.map { (service, $0) }
        }
        let leaving = secureListeners.filter { old in !wanted.contains { $0.address == old.address } }
        do throws(ClientSideError) {
            for (service, address) in wanted {
                if let staying = secureListeners.first(where: { $0.address == address }) {
                    opened.entries.append((staying, service))
                } else {
                    let overlapping = leaving.filter { $0.address.overlaps(address) }
                    for listener in overlapping { try? listener.descriptor.set(.sharedPort, to: 1) }
                    opened.overlapping += overlapping
                    let listener = try open(address, service, sharesPort: !overlapping.isEmpty)
                    opened.entries.append((listener, service))
                }
            }
        } catch {
            undo(opened)
            throw error
        }
        return opened
    }

    private func makeService(
        _ kind: SecureService.Kind, _ configuration: SecureListenConfiguration
    ) throws(ClientSideError) -> SecureService {
        do throws(SecureCertificateError) {
            let context = try configuration.makeContext(protocols: kind.protocols)
            switch context.validityProblem {
            case .expired: log.error("dns.secureListen: the certificate has expired, and clients will refuse it")
            case .notYetValid:
                log.error("dns.secureListen: the certificate is not valid yet, and clients will refuse it")
            default: break
            }
            return SecureService(kind, context, path: configuration.path)
        } catch { throw .certificate(error) }
    }

    private mutating func open(
        _ address: AddressAndPort, _ service: SecureService, sharesPort: Bool
    ) throws(ClientSideError) -> SecureListener {
        let opening = ListenerOpening(address: address, number: nextNumber, threads: 1, sharesPort: sharesPort)
        do throws(SystemCallError) {
            let descriptor = try opening.openStreams()
            nextNumber += 1
            return SecureListener(
                number: opening.number, address: address, descriptor: descriptor, service: service)
        } catch { throw .listening(address, service.kind == .tls ? .tls : .https, error) }
    }

    /// Lets go of what was opened.
    private func undo(_ opened: OpenedSecureListeners) {
        for listener in opened.overlapping { try? listener.descriptor.set(.sharedPort, to: 0) }
    }

    /// Listens at other addresses for plain queries; when that cannot be, the listeners for TLS that were opened before are let go of.
    mutating func changeListeners(
        to addresses: [AddressAndPort], orUndo opened: OpenedSecureListeners, _ loop: borrowing EventLoop
    ) throws(ClientSideError) {
        do throws(ClientSideError) {
            try changeListeners(to: addresses, loop)
        } catch {
            undo(opened)
            throw error
        }
    }

    /// Has clients connect to these from now on, and shows them the certificate that was read. Those that are connected stay.
    mutating func adopt(_ opened: OpenedSecureListeners, _ loop: borrowing EventLoop) {
        let leaving = secureListeners.filter { old in !opened.entries.contains { $0.listener === old } }
        for listener in leaving { unregister(listener, from: loop) }
        for (listener, service) in opened.entries {
            listener.service = service
            if secureListeners.contains(where: { $0 === listener }) { continue }
            do throws(SystemCallError) { try register(listener, with: loop) } catch {
                log.error("nobody is accepted for TLS at one of the addresses: \(error)")
            }
            // It was possible to set it.
            try? listener.descriptor.set(.sharedPort, to: 0)
        }
        secureListeners = opened.listeners
        streams.handshakeLimits = opened.limits
    }

    /// Starts watching for clients that connect to a listener.
    func register(_ listener: SecureListener, with loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.register(
            listener.descriptor, token: ClientSideToken.listener(listener.number).rawValue,
            interest: pausedUntil == nil ? .readable : [])
    }

    /// Stops watching a listener, if it was watched.
    func unregister(_ listener: SecureListener, from loop: borrowing EventLoop) {
        try? loop.unregister(listener.descriptor)
    }

    /// The listener for TLS with a number; nil when it is gone.
    func secureListener(_ number: Int) -> SecureListener? { secureListeners.first { $0.number == number } }
}
