import ByteAccess
import IPPacket
public import Provider

/// One connection of the cross-platform configuration protocol (UAPI), by which `wg` and others set and read a device. Lines
/// go in, and take effect on the device at once; what only the host can do comes out.
///
/// ```
///            get=1                    empty line
///   idle ──────────────▶ listing ─────────────────────────────▶ idle, .list
///    │ │
///    │ └─ set=1 ──▶ device keys ── public_key ──▶ peer keys ─┐
///    │                   │                          ▲  └─────┘ public_key: the next peer
///    │                   └──────────┬───────────────┘
///    │                              │ empty line
///    │                              └─────────────────────────▶ idle, .reply
///    │
///    └─ a line that is refused, anywhere ──▶ skipping, .reply with the error ── empty line ──▶ idle
/// ```
///
/// A refused line ends its operation and is answered at once: what follows is skipped up to the empty line, and what came
/// before stays in effect.
public struct ConfigurationSession: ~Copyable {
    /// What a line asks of the host.
    public enum Step: Equatable, Sendable {
        /// Nothing: give the next line.
        case next
        /// Bind the sockets to this port (zero for any), then give the next line. When that fails, call ``fail(_:)``.
        case setListenPort(UInt16)
        /// Set this mark on what the sockets send, then give the next line. When that fails, call ``fail(_:)``.
        case setFirewallMark(UInt32)
        /// Answer a set operation: with success, or with the error that ended it.
        case reply(Failure?)
        /// Answer a get operation: with the device's settings, or with the error that ended it.
        case list(Failure?)
    }

    /// Why an operation failed.
    public enum Failure: Equatable, Sendable {
        /// A line was refused.
        case refused(ConfigurationError)
        /// The host could not do what a line asked for: the `errno` of the system call.
        case system(Int32)
    }

    private enum State {
        case idle
        case listing
        case device
        case peer(PeerStanza)
        case skipping
    }

    /// What is known about the peer that lines are about.
    private struct PeerStanza {
        /// Nil when the lines concern no peer of the device: its own key, a removed or, with `update_only`, unknown peer.
        ///
        /// It is the name and not the number, because another connection may remove the peer between two lines.
        var key: PublicKey?
        /// The peer did not exist before.
        var isNew: Bool
        /// Persistent keepalives were turned on.
        var startsKeepalives = false

        /// The peer that the lines concern, if the device has it.
        func peer<Primitives>(of device: borrowing Device<Primitives>) -> PeerIndex? {
            guard let key else { return nil }
            return device.peerIndex(of: key)
        }
    }

    private var state = State.idle

    /// A connection that nothing came in on yet.
    public init() {}

    /// Ends the operation under way with a failure of the host, and returns the answer.
    public mutating func fail(_ errorNumber: Int32) -> Step {
        state = .skipping
        return .reply(.system(errorNumber))
    }

    /// Takes one line, without its line feed.
    ///
    /// - Parameter interfaceIndex: Finds the number of an interface by its name, for the scope of a link-local endpoint.
    public mutating func receive<Primitives>(
        _ line: RawSpan, for device: inout Device<Primitives>, at now: Instant, interfaceIndex: (String) -> UInt32?
    ) -> Step {
        if line.isEmpty { return finish(&device, at: now) }
        do throws(ConfigurationError) {
            if case .skipping = state { return .next }
            let line = try ConfigurationLine(line)
            switch state {
            case .idle:
                try begin(line)
                return .next
            case .listing:
                throw .unknownKey
            case .device:
                return try setDevice(line, of: &device, at: now)
            case .peer(let stanza):
                try setPeer(line, stanza, of: &device, at: now, interfaceIndex: interfaceIndex)
                return .next
            case .skipping:
                return .next
            }
        } catch {
            return refuse(error)
        }
    }

    /// Notes that a line was longer than any line can be.
    public mutating func receiveOverlongLine() -> Step {
        refuse(.malformedLine)
    }

    private mutating func refuse(_ error: ConfigurationError) -> Step {
        switch state {
        case .skipping: return .next
        case .listing:
            state = .skipping
            return .list(.refused(error))
        case .idle, .device, .peer:
            state = .skipping
            return .reply(.refused(error))
        }
    }

    /// Takes the empty line that ends an operation. One that ends nothing is passed over.
    private mutating func finish<Primitives>(_ device: inout Device<Primitives>, at now: Instant) -> Step {
        defer { state = .idle }
        switch state {
        case .idle, .skipping: return .next
        case .listing: return .list(nil)
        case .device: return .reply(nil)
        case .peer(let stanza):
            finish(stanza, of: &device)
            return .reply(nil)
        }
    }

    private mutating func begin(_ line: borrowing ConfigurationLine) throws(ConfigurationError) {
        guard line.isKey("get") || line.isKey("set") else { throw .unknownKey }
        let isGet = line.isKey("get")
        if isGet { state = .listing }
        guard try line.number(upTo: 1) == 1 else { throw .invalidValue }
        if !isGet { state = .device }
    }

    private mutating func setDevice<Primitives>(
        _ line: borrowing ConfigurationLine, of device: inout Device<Primitives>, at now: Instant
    ) throws(ConfigurationError) -> Step {
        if line.isKey("private_key") {
            var key = SecretMemory(byteCount: PublicKey.byteCount)
            try line.readKey(into: &key)
            if isAllZero(key.bytes) {
                device.removePrivateKey(at: now)
            } else {
                device.setPrivateKey(key.bytes, at: now)
            }
        } else if line.isKey("listen_port") {
            return .setListenPort(UInt16(try line.number(upTo: UInt64(UInt16.max))))
        } else if line.isKey("fwmark") {
            return .setFirewallMark(UInt32(try line.number(upTo: UInt64(UInt32.max))))
        } else if line.isKey("replace_peers") {
            try line.requireTrue()
            device.removeAllPeers()
        } else if line.isKey("public_key") {
            try beginPeer(line, of: &device)
        } else {
            throw .unknownKey
        }
        return .next
    }

    private mutating func beginPeer<Primitives>(
        _ line: borrowing ConfigurationLine, of device: inout Device<Primitives>
    ) throws(ConfigurationError) {
        var bytes = SecretMemory(byteCount: PublicKey.byteCount)
        try line.readKey(into: &bytes)
        let key = PublicKey(bytes.bytes)
        let known = device.peerIndex(of: key)
        let peer = known ?? device.addPeer(key)
        if peer == nil, device.isFull { throw .tooManyPeers }
        state = .peer(PeerStanza(key: peer == nil ? nil : key, isNew: known == nil))
    }

    private mutating func setPeer<Primitives>(
        _ line: borrowing ConfigurationLine, _ old: PeerStanza, of device: inout Device<Primitives>, at now: Instant,
        interfaceIndex: (String) -> UInt32?
    ) throws(ConfigurationError) {
        var stanza = old
        let peer = stanza.peer(of: device)
        if line.isKey("public_key") {
            finish(stanza, of: &device)
            return try beginPeer(line, of: &device)
        } else if line.isKey("remove") {
            try line.requireTrue()
            if let peer { device.removePeer(peer) }
            stanza.key = nil
        } else if line.isKey("update_only") {
            try line.requireTrue()
            if stanza.isNew, let peer {
                device.removePeer(peer)
                stanza.key = nil
            }
        } else if line.isKey("preshared_key") {
            var key = SecretMemory(byteCount: PublicKey.byteCount)
            try line.readKey(into: &key)
            if let peer { device.setPresharedKey(key.bytes, of: peer) }
        } else if line.isKey("endpoint") {
            let endpoint = try Endpoint(parsing: try line.text(), interfaceIndex: interfaceIndex)
            if let peer { device.setEndpoint(endpoint, of: peer) }
        } else if line.isKey("persistent_keepalive_interval") {
            let seconds = try line.number(upTo: UInt64(UInt16.max))
            if let peer {
                let interval = seconds == 0 ? nil : Interval.seconds(seconds)
                if device.setPersistentKeepalive(interval, of: peer, at: now) { stanza.startsKeepalives = true }
            }
        } else if line.isKey("replace_allowed_ips") {
            try line.requireTrue()
            if let peer { device.removeAllowedIPs(of: peer) }
        } else if line.isKey("allowed_ip") {
            try setAllowedIP(try line.text(), stanza, of: &device)
        } else if line.isKey("protocol_version") {
            guard try line.number(upTo: 1) == 1 else { throw .invalidValue }
        } else {
            throw .unknownKey
        }
        state = .peer(stanza)
    }

    private func setAllowedIP<Primitives>(
        _ text: String, _ stanza: PeerStanza, of device: inout Device<Primitives>
    ) throws(ConfigurationError) {
        let isRemoval = text.hasPrefix("-")
        let digits = isRemoval ? String(text.dropFirst()) : text
        guard digits.contains("/"), let prefix = try? IPPrefix(parsing: digits) else { throw .invalidValue }
        guard let peer = stanza.peer(of: device) else { return }
        if isRemoval {
            device.removeAllowedIP(prefix, of: peer)
        } else {
            device.addAllowedIP(prefix, for: peer)
        }
    }

    private func finish<Primitives>(_ stanza: PeerStanza, of device: inout Device<Primitives>) {
        guard let peer = stanza.peer(of: device) else { return }
        device.peerConfigured(peer, startsKeepalives: stanza.startsKeepalives)
    }
}
