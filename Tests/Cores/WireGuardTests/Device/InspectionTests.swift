import ByteAccess
import IPPacket
import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

/// Snapshots, compared with the listing of the configuration protocol, which other programs read.
@Suite("Inspection")
struct InspectionTests {
    private static let privateKey = "e84b5a6d2717c1003a13b431570353dbaca9146cf150c5f8575680feba52027a"
    private static let keys = [
        "b85996fecc9c7f1fc6d2572a76eda11d59bcd20be8e543b15ce4bd85a8e75a33",
        "58402e695ba1772b1cc9309755f043251ea77fdcf10fbe63989ceb7e19321376",
        "662e14fd594556f522604703340351258903b64f35553763f19426ab2a515c58",
    ]
    private static let presharedKey = "188515093e952f5f22e865cef3012e72f8b5f0b598ac0309d5dacce3b70fcf52"

    private func hexadecimal(_ bytes: RawSpan) -> String {
        bytes.byteOffsets.map { offset in
            let digits = String(bytes.uint8(at: offset), radix: 16)
            return digits.count == 1 ? "0\(digits)" : digits
        }.joined()
    }

    private func text(_ memory: borrowing SecretMemory?) -> String? {
        switch memory {
        case .some(let memory): hexadecimal(memory.bytes)
        case .none: nil
        }
    }

    private func key(_ text: String) -> PublicKey {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let byte = UInt8(rest.prefix(2), radix: 16) {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return PublicKey(bytes.octets)
    }

    /// The lines that a listing has for a snapshot, as far as a snapshot knows.
    private func lines(_ snapshot: PeerSnapshot, presharedKey: String?) -> [String] {
        var lines = ["public_key=\(hexadecimal(snapshot.publicKey.bytes))"]
        lines.append("preshared_key=\(presharedKey ?? String(repeating: "0", count: 64))")
        lines.append("protocol_version=1")
        if let endpoint = snapshot.endpoint {
            lines.append("endpoint=\(endpoint.text(interfaceName: ConfiguredDevice.interfaceName))")
        }
        lines.append("last_handshake_time_sec=\(snapshot.lastHandshake?.seconds ?? 0)")
        lines.append("last_handshake_time_nsec=\(snapshot.lastHandshake?.nanoseconds ?? 0)")
        lines += ["tx_bytes=\(snapshot.sentBytes)", "rx_bytes=\(snapshot.receivedBytes)"]
        lines.append("persistent_keepalive_interval=\(snapshot.persistentKeepaliveSeconds ?? 0)")
        return (lines + snapshot.allowedIPs.map { "allowed_ip=\($0)" }).sorted()
    }

    private func configured() -> ConfiguredDevice {
        let device = ConfiguredDevice()
        device.receive(
            """
            set=1
            private_key=\(Self.privateKey)
            public_key=\(Self.keys[0])
            preshared_key=\(Self.presharedKey)
            endpoint=[fe80::1%eth0]:51820
            persistent_keepalive_interval=65535
            allowed_ip=10.0.0.0/8
            allowed_ip=fd00::/8
            allowed_ip=192.0.2.1/32
            public_key=\(Self.keys[1])
            public_key=\(Self.keys[2])
            preshared_key=\(String(repeating: "0", count: 64))
            endpoint=192.0.2.1:1
            persistent_keepalive_interval=1
            allowed_ip=0.0.0.0/0


            """)
        return device
    }

    @Test("A snapshot says what the listing says, in the order in which peers were added")
    func snapshotsAreTheListing() {
        let configured = configured()
        let snapshots = configured.device.snapshots
        #expect(snapshots.map { hexadecimal($0.publicKey.bytes) } == Self.keys)
        let parts = configured.listing().split(separator: "\n").map(String.init)
            .split { $0.hasPrefix("public_key=") }.dropFirst().map(Array.init)
        #expect(parts.count == 3)
        for (index, (snapshot, part)) in zip(snapshots, parts).enumerated() {
            let listed = (part.filter { !$0.hasPrefix("errno=") } + ["public_key=\(Self.keys[index])"]).sorted()
            #expect(lines(snapshot, presharedKey: index == 0 ? Self.presharedKey : nil) == listed)
            #expect(configured.device.snapshot(of: snapshot.publicKey) == snapshot)
        }
    }

    @Test("What was configured last is what a snapshot has, and a removed peer has none")
    func snapshotsFollowChanges() {
        let configured = configured()
        configured.receive(
            """
            set=1
            public_key=\(Self.keys[0])
            persistent_keepalive_interval=0
            endpoint=192.0.2.9:9
            replace_allowed_ips=true
            allowed_ip=10.1.0.0/16
            public_key=\(Self.keys[1])
            remove=true
            public_key=\(Self.keys[2])
            allowed_ip=10.1.2.0/24


            """)
        let first = configured.device.snapshot(of: key(Self.keys[0]))
        #expect(first?.persistentKeepaliveSeconds == nil)
        #expect(first?.endpoint == Endpoint(address: v4(192, 0, 2, 9), port: 9))
        #expect(first?.allowedIPs == [try? IPPrefix(parsing: "10.1.0.0/16")].compactMap(\.self))
        #expect(configured.device.snapshot(of: key(Self.keys[1])) == nil)
        #expect(configured.device.snapshots.count == 2)
    }

    @Test("Copies of keys are the keys; a preshared key of zeros is none")
    func keysAreCopied() {
        let configured = configured()
        #expect(text(configured.device.privateKeyCopy) == Self.privateKey)
        #expect(text(configured.device.presharedKeyCopy(of: key(Self.keys[0]))) == Self.presharedKey)
        #expect(text(configured.device.presharedKeyCopy(of: key(Self.keys[1]))) == nil)
        #expect(text(configured.device.presharedKeyCopy(of: key(Self.keys[2]))) == nil)
        #expect(text(configured.device.presharedKeyCopy(of: key(Self.privateKey))) == nil)
        configured.receive("set=1\nprivate_key=\(String(repeating: "0", count: 64))\n\n")
        #expect(text(configured.device.privateKeyCopy) == nil)
    }

    @Test("A snapshot counts and dates what came through a session, and follows the peer")
    func snapshotsCount() throws {
        let rig = Rig()
        let before = try #require(rig.machine.device.snapshots.first)
        #expect(before.endpoint == rig.endpoint)
        #expect((before.receivedBytes, before.sentBytes) == (0, 0))
        #expect(before.lastHandshake == nil)
        // A message of a handshake is 148 and 92 bytes long, one without a packet 32 (section 5.4).
        var session = try rig.sessionAsResponder()
        let confirmed = try #require(rig.machine.device.snapshots.first)
        #expect((confirmed.receivedBytes, confirmed.sentBytes) == (148 + 32, 92))
        #expect(confirmed.lastHandshake != nil)
        let elsewhere = Endpoint(address: v4(192, 0, 2, 77), port: 7)
        let message = session.seal(rig.reply(1))
        try rig.receive(message, from: elsewhere)
        let moved = try #require(rig.machine.device.snapshots.first)
        #expect(moved.receivedBytes == confirmed.receivedBytes + UInt64(message.count))
        #expect(moved.endpoint == elsewhere)
        let sent = try rig.send(rig.packet(1)).reduce(0) { $0 + $1.bytes.count }
        #expect(sent > 0)
        #expect(rig.machine.device.snapshots.first?.sentBytes == moved.sentBytes + UInt64(sent))
    }
}
