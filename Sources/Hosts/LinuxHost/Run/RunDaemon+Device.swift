internal import OpenSSLCrypto
internal import PacketTunnel
internal import Provider
internal import WireGuard

// The interface with its WireGuard device, and who asks them by `wg`.
extension RunDaemon {
    /// Calls `body` with the device, alone; nil when the interface is closed.
    @discardableResult
    mutating func withDeviceIfAny<Result>(_ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result? {
        interface?.withDevice(body)
    }

    func deviceDeadline() -> Instant? {
        guard !isDevicePaused else { return nil }
        switch interface {
        case .some(let interface): return interface.nextDeadline()
        case .none: return nil
        }
    }

    /// Lets the device do what it has to do by itself, and tells the provider of it.
    mutating func act() {
        guard !isDevicePaused else { return }
        var events: [WireGuard.Event] = []
        interface?.act { events.append($0) }
        for event in events { note(event) }
        noteLoss()
        settle()
    }

    private mutating func noteLoss() {
        guard !reportedLoss else { return }
        let failure: ProviderFailure
        switch interface {
        case .none: return
        case .some(let interface):
            switch interface.condition {
            case .present: return
            case .deleted: failure = .interfaceRemoved
            case .failed(let error):
                log.error("the interface failed: \(public: String(describing: error))")
                failure = .interfaceFailed
            }
        }
        reportedLoss = true
        tell(.fail(failure))
    }

    private mutating func note(_ event: WireGuard.Event) {
        switch event {
        case .handshakeCompleted(let peer): if let key = key(of: peer) { tell(.handshakeCompleted(key)) }
        case .handshakeGivenUp(let peer): if let key = key(of: peer) { tell(.handshakeGivenUp(key)) }
        case .initiationReplayed(let peer):
            log.error(
                "peer \(peer.rawValue): a handshake came with an old time stamp: a replay, or its clock stepped back")
        case .endpointChanged(let peer):
            guard let key = key(of: peer), let endpoint = withDeviceIfAny({ $0.snapshot(of: key)?.endpoint }) ?? nil
            else { return }
            tell(.endpointChanged(key, endpoint))
            // The way to the new endpoint may be another one.
            observer.expectChange()
        }
    }

    private mutating func key(of peer: PeerIndex) -> PublicKey? {
        withDeviceIfAny { $0.publicKey(of: peer) } ?? nil
    }

    mutating func serveControl(_ token: UInt64) {
        guard let client = control?.client(token) ?? nil else { return }
        let isAlive = client.connection.serve(at: HostClock.now(), for: &self)
        control?.served(client, token, isAlive: isAlive, loop)
    }

    /// Lets the DNS proxy answer what comes out of the TUN device, where there are both.
    mutating func serveTunnel() {
        switch interface {
        case .none: break
        case .some(let interface):
            do throws(SystemCallError) {
                try dns?.serve(interface.duplicateDevice())
            } catch {
                log.error("the DNS proxy cannot answer what comes from the interface: \(public: error.description)")
            }
        }
    }
}

extension RunDaemon: ControlTarget {
    func withDevice<Result>(_ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result {
        switch interface {
        case .some(let interface): return interface.withDevice(body)
        case .none: preconditionFailure("a control client without an interface")
        }
    }

    mutating func setListenPort(_ port: UInt16) -> Int32? {
        (interface?.setListenPort(port, loop) ?? nil)?.errorNumber
    }

    mutating func setFirewallMark(_ mark: UInt32) -> Int32? {
        (interface?.setFirewallMark(mark) ?? nil)?.errorNumber
    }
}
