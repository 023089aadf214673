import ByteAccess
import IPPacket
import Provider

/// The answer to a get operation, piece by piece, so that a device with very many peers never needs it in memory as a whole.
public struct ConfigurationListing {
    private enum Position {
        case device
        case peer(PeerIndex)
        case allowedIPs(PeerIndex, after: AllowedIPs.Entry)
        case end
    }

    /// The most allowed IPs in one piece.
    private static let entriesInPiece = 256

    private var position = Position.device

    /// The listing of a device, from its beginning.
    public init() {}

    /// Appends the next piece of text to `output`. It holds keys: wipe it after use.
    ///
    /// - Parameter interfaceName: Finds the name of an interface by its number, for the scope of a link-local endpoint.
    /// - Returns: False when the listing was at its end; nothing was appended then.
    public mutating func appendNext<Primitives>(
        of device: borrowing Device<Primitives>, to output: inout [UInt8], interfaceName: (UInt32) -> String?
    ) -> Bool {
        switch position {
        case .device:
            Self.append(settingsOf: device, to: &output)
            move(to: device.firstPeer)
        case .peer(let index):
            guard let peer = device.peers[Int(index.rawValue)] else {
                position = .end
                return false
            }
            Self.append(peer, to: &output, interfaceName: interfaceName)
            append(allowedIPsFrom: device.allowedIPs.firstEntry(of: index), of: peer, of: device, to: &output)
        case .allowedIPs(let index, let entry):
            guard let peer = device.peers[Int(index.rawValue)] else {
                position = .end
                return false
            }
            append(allowedIPsFrom: device.allowedIPs.entry(after: entry), of: peer, of: device, to: &output)
        case .end:
            return false
        }
        return true
    }

    private mutating func move(to peer: PeerIndex?) {
        position = peer.map { .peer($0) } ?? .end
    }

    private mutating func append<Primitives>(
        allowedIPsFrom first: AllowedIPs.Entry?, of peer: Peer, of device: borrowing Device<Primitives>,
        to output: inout [UInt8]
    ) {
        var next = first
        for _ in 0..<Self.entriesInPiece {
            guard let entry = next else { return move(to: peer.nextPeer) }
            output.append(contentsOf: "allowed_ip=\(entry.address)/\(entry.prefixLength)\n".utf8)
            position = .allowedIPs(peer.index, after: entry)
            next = device.allowedIPs.entry(after: entry)
        }
        if next == nil { move(to: peer.nextPeer) }
    }

    private static func append<Primitives>(settingsOf device: borrowing Device<Primitives>, to output: inout [UInt8]) {
        switch device.identity {
        case .some(let identity): append("private_key", identity.privateKey.bytes, to: &output)
        case .none: break
        }
        if device.listenPort != 0 { output.append(contentsOf: "listen_port=\(device.listenPort)\n".utf8) }
        if device.firewallMark != 0 { output.append(contentsOf: "fwmark=\(device.firewallMark)\n".utf8) }
    }

    private static func append(_ peer: Peer, to output: inout [UInt8], interfaceName: (UInt32) -> String?) {
        append("public_key", peer.publicKey.bytes, to: &output)
        append("preshared_key", peer.presharedKey.bytes, to: &output)
        output.append(contentsOf: "protocol_version=1\n".utf8)
        if let remote = peer.path?.remote {
            output.append(contentsOf: "endpoint=\(remote.text(interfaceName: interfaceName))\n".utf8)
        }
        let seconds = (peer.timers.persistentKeepaliveInterval?.nanoseconds ?? 0) / 1_000_000_000
        output.append(
            contentsOf: """
                last_handshake_time_sec=\(peer.lastHandshake?.seconds ?? 0)
                last_handshake_time_nsec=\(peer.lastHandshake?.nanoseconds ?? 0)
                tx_bytes=\(peer.sentBytes)
                rx_bytes=\(peer.receivedBytes)
                persistent_keepalive_interval=\(seconds)

                """.utf8)
    }

    private static func append(_ name: String, _ key: RawSpan, to output: inout [UInt8]) {
        output.append(contentsOf: "\(name)=".utf8)
        for offset in key.byteOffsets {
            output.append(hexadecimalDigit(key.uint8(at: offset) >> 4))
            output.append(hexadecimalDigit(key.uint8(at: offset) & 0xf))
        }
        output.append(UInt8(ascii: "\n"))
    }

    private static func hexadecimalDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
