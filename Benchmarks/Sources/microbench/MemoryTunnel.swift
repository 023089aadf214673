import ByteAccess
import IPPacket
import OpenSSLCrypto
import Provider
import WireGuard

/// Two devices wired back to back in memory, with a session.
struct MemoryTunnel: ~Copyable {
    /// The end that started the handshake.
    var near: Device<OpenSSLCryptography>
    /// The other end.
    var far: Device<OpenSSLCryptography>
    /// The time, which passes as packets do: a microsecond each, so that timers move but nothing runs out.
    private(set) var now: Instant

    static let nearPath = path(to: IPv4Address(192, 0, 2, 1), from: IPv4Address(192, 0, 2, 2))
    static let farPath = path(to: IPv4Address(192, 0, 2, 2), from: IPv4Address(192, 0, 2, 1))

    /// Lets both ends shake hands and pass a packet in each direction.
    init() throws {
        let cryptography = try OpenSSLCryptography()
        let keys = [[UInt8](repeating: 0x11, count: 32), [UInt8](repeating: 0x22, count: 32)]
        let publicKeys = keys.map { key in
            var publicKey = [UInt8](repeating: 0, count: 32)
            var span = publicKey.mutableSpan
            var bytes = span.mutableOctets
            cryptography.derivePublicKey(of: key.span.octets, into: &bytes)
            return publicKey
        }
        let now = Instant(nanoseconds: 1_000_000_000_000)
        var near = try Self.device(
            privateKey: keys[0], peer: publicKeys[1], at: Self.farPath, allowing: TestPackets.far, now: now)
        var far = try Self.device(
            privateKey: keys[1], peer: publicKeys[0], at: Self.nearPath, allowing: TestPackets.near, now: now)

        let (there, back) = (
            TestPackets.tcp(length: 60), TestPackets.tcp(length: 60, from: TestPackets.far, to: TestPackets.near)
        )
        var message = [UInt8](repeating: 0, count: 2048)
        var span = message.mutableSpan
        var bytes = span.mutableOctets
        _ = near.transmit(there.span.octets, into: &bytes, at: now)
        var delivered = 0
        var isQuiet = false
        while !isQuiet {
            let fromNear = Self.pump(&near, Self.nearPath, to: &far, through: &bytes, at: now)
            let fromFar = Self.pump(&far, Self.farPath, to: &near, through: &bytes, at: now)
            delivered += (fromNear ?? 0) + (fromFar ?? 0)
            isQuiet = fromNear == nil && fromFar == nil
        }
        precondition(delivered == 1, "the handshake failed")
        guard case .send = far.transmit(back.span.octets, into: &bytes, at: now) else {
            preconditionFailure("the other end has no session")
        }
        self.near = near
        self.far = far
        self.now = now
    }

    /// Lets a microsecond pass.
    mutating func advance() {
        now = now + Interval(nanoseconds: 1000)
    }

    private static func path(to remote: IPv4Address, from local: IPv4Address) -> Path {
        Path(
            remote: Endpoint(address: .v4(remote), port: 51820),
            source: LocalSource(address: .v4(local), interfaceIndex: 1))
    }

    private static func device(
        privateKey: [UInt8], peer: [UInt8], at path: Path, allowing address: IPAddress, now: Instant
    ) throws -> Device<OpenSSLCryptography> {
        var device = Device(
            cryptography: try OpenSSLCryptography(), entropy: SystemRandomNumberGenerator())
        device.listenPort = 51820
        device.setLink(up: true, at: now)
        device.setPrivateKey(privateKey.span.octets, at: now)
        guard let index = device.addPeer(PublicKey(peer.span.octets)) else { preconditionFailure("no room for a peer") }
        device.setEndpoint(path.remote, of: index)
        device.addAllowedIP(IPPrefix(host: address), for: index)
        return device
    }

    /// Does what a device has to do and hands its messages to the other one.
    ///
    /// - Returns: How many packets came out at the other end; nil when there was nothing to do.
    private static func pump(
        _ device: inout Device<OpenSSLCryptography>, _ path: Path, to other: inout Device<OpenSSLCryptography>,
        through bytes: inout MutableRawSpan, at now: Instant
    ) -> Int? {
        var delivered: Int?
        var packets = DeliveredPackets()
        let wallClock = WallClockTime(seconds: 1_750_000_000, nanoseconds: 0)
        while let action = device.nextAction(into: &bytes, at: now, wallClock: wallClock) {
            guard case .send(let length, _) = action else { continue }
            other.receive(
                MessageTrain(offset: 0, length: length), in: &bytes, from: path, trafficClass: 0, at: now,
                delivering: &packets)
            delivered = (delivered ?? 0) + packets.count
        }
        return delivered
    }
}
