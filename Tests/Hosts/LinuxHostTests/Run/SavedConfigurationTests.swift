import ByteAccess
import CLinux
import Glibc
import IPPacket
import OpenSSLCrypto
import PacketTunnel
import Provider
import TestSupport
import Testing
import WireGuard

@testable import LinuxHost

private let ownKey = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
private let firstKey = "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg="
private let secondKey = "TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0="
private let sharedKey = "FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE="

@Suite struct SavedConfigurationTests {
    private func read(_ text: String) throws -> QuickConfiguration {
        try QuickConfiguration(reading: text.utf8Span.span.octets)
    }

    private func publicKey(_ text: String) throws -> PublicKey {
        let memory = KeyText.decode(text.utf8Span.span.octets)
        switch consume memory {
        case .some(let memory): return PublicKey(memory.bytes)
        case .none: throw Impatience(awaited: "a key")
        }
    }

    private let file = """
        [Interface]
        Address = 10.8.0.2/24
        MTU = 1380
        SaveConfig = true
        PostUp = echo up
        PrivateKey = \(ownKey)
        [Peer]
        PublicKey = \(firstKey)
        AllowedIPs = 10.8.0.0/24
        """

    @Test func savesWhatTheDeviceHasAndKeepsTheRest() throws {
        try inTemporaryFolder { folder in
            let quick = try read(file)
            var device = Device(cryptography: try OpenSSLCryptography(), entropy: SystemRandomNumberGenerator())
            let now = HostClock.now()
            let privateKey = KeyText.decode(ownKey.utf8Span.span.octets)
            switch consume privateKey {
            case .some(let memory): device.setPrivateKey(memory.bytes, at: now)
            case .none: Issue.record("no key")
            }
            device.listenPort = 51_820
            // What somebody configured since, with wg.
            let first = try #require(device.addPeer(try publicKey(firstKey)))
            device.addAllowedIP(try IPPrefix(parsing: "10.8.0.0/24"), for: first)
            device.setEndpoint(Endpoint(address: address("fe80::1"), port: 7, scope: 1), of: first)
            let second = try #require(device.addPeer(try publicKey(secondKey)))
            device.addAllowedIP(try IPPrefix(parsing: "10.9.0.0/16"), for: second)
            device.addAllowedIP(try IPPrefix(parsing: "fd00::/8"), for: second)
            device.setEndpoint(Endpoint(address: address("192.0.2.1"), port: 51_820), of: second)
            _ = device.setPersistentKeepalive(.seconds(25), of: second, at: now)
            let presharedKey = KeyText.decode(sharedKey.utf8Span.span.octets)
            switch consume presharedKey {
            case .some(let memory): device.setPresharedKey(memory.bytes, of: second)
            case .none: Issue.record("no key")
            }

            let path = "\(folder)/slt-saved.conf"
            let current = SavedConfiguration.current(quick, of: device)
            try SavedConfiguration.write(current, to: path)
            #expect(mode(of: path).map { $0 & 0o7777 } == 0o600)
            #expect(try lines(output(of: "ls", folder)) == ["slt-saved.conf"])
            // What Debian's wg-quick gives to wg.
            let stripped = try lines(output(of: "wg-quick", "strip", path)).filter { !$0.isEmpty }
            #expect(
                stripped == [
                    "[Interface]", "ListenPort = 51820", "PrivateKey = \(ownKey)", "[Peer]", "PublicKey = \(firstKey)",
                    "AllowedIPs = 10.8.0.0/24", "Endpoint = [fe80::1%lo]:7", "[Peer]", "PublicKey = \(secondKey)",
                    "PresharedKey = \(sharedKey)", "AllowedIPs = 10.9.0.0/16, fd00::/8", "Endpoint = 192.0.2.1:51820",
                    "PersistentKeepalive = 25",
                ])
            let saved = try readFile(path)
            for line in ["Address = 10.8.0.2/24", "MTU = 1380", "SaveConfig = true", "PostUp = echo up"] {
                #expect(lines(saved).contains(line))
            }
            #expect(try read(saved) == current)
        }
    }

    @Test func replacesTheFileInOneStep() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/wg0.conf"
            try writeFile("old", to: path, mode: 0o640)
            // One that others can read, of an attempt that was interrupted.
            try writeFile("stale", to: "\(path).tmp", mode: 0o666)
            let before = FileDescriptor(adopting: try systemCall("open") { unsafe open(path, O_RDONLY) })
            let stale = FileDescriptor(adopting: try systemCall("open") { unsafe open("\(path).tmp", O_RDONLY) })
            let quick = try read(file)
            try SavedConfiguration.write(quick, to: path)
            #expect(mode(of: path).map { $0 & 0o7777 } == 0o600)
            #expect(mode(of: "\(path).tmp") == nil)
            // Who has the old ones open sees no more of the new than before.
            #expect(try WholeFile.read(before) == Array("old".utf8))
            #expect(try WholeFile.read(stale) == Array("stale".utf8))
            #expect(try read(readFile(path)) == quick)
        }
    }

    @Test func aFailureLeavesTheFileAlone() throws {
        try inTemporaryFolder { folder in
            let path = "\(folder)/wg0.conf"
            // A folder that is not empty cannot be replaced by a file.
            try run("mkdir", "-p", "\(path)/inner")
            let quick = try read(file)
            #expect(throws: SystemCallError("rename", errno: EISDIR)) { try SavedConfiguration.write(quick, to: path) }
            #expect(try lines(output(of: "ls", folder)) == ["wg0.conf"])
        }
    }
}
