internal import ByteAccess
internal import CLinux
internal import Glibc
internal import OpenSSLCrypto
internal import PacketTunnel
internal import WireGuard

/// `SaveConfig`: writes a tunnel's file again from what the device has, as `wg-quick save` does.
enum SavedConfiguration {
    /// The configuration that a device has now; what it knows nothing of stays as the file said it.
    static func current(
        _ quick: QuickConfiguration, of device: borrowing Device<OpenSSLCryptography>
    ) -> QuickConfiguration {
        var current = quick
        current.tunnel.privateKey = SecretKey(device.privateKeyCopy)
        current.tunnel.listenPort = device.listenPort
        current.tunnel.peers = device.snapshots.map { snapshot in
            var peer = PeerConfiguration(publicKey: snapshot.publicKey)
            peer.presharedKey = SecretKey(device.presharedKeyCopy(of: snapshot.publicKey))
            peer.allowedIPs = snapshot.allowedIPs
            peer.persistentKeepaliveSeconds = snapshot.persistentKeepaliveSeconds
            peer.endpoint = snapshot.endpoint.map { EndpointName($0) }
            return peer
        }
        return current
    }

    /// Writes the file in place of the one that is there, in one step. Only its owner can read it.
    static func write(_ quick: QuickConfiguration, to path: String) throws(SystemCallError) {
        let temporary = "\(path).tmp"
        // What an earlier attempt left may be open to others.
        unsafe unlink(temporary)
        let descriptor = FileDescriptor(
            adopting: try systemCall("open") {
                unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            })
        let number = descriptor.rawValue
        do throws(SystemCallError) {
            try write(quick.file().bytes, to: number)
            _ = try systemCall("fsync") { fsync(number) }
            _ = try systemCall("rename") { unsafe rename(temporary, path) }
        } catch {
            unsafe unlink(temporary)
            throw error
        }
    }

    private static func write(_ bytes: RawSpan, to number: Int32) throws(SystemCallError) {
        var written = 0
        while written < bytes.byteCount {
            let rest = bytes.extracting(written..<bytes.byteCount)
            written += try systemCall("write") {
                // The pointer and the length are the span's own.
                unsafe rest.withUnsafeBytes { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
            }
        }
    }
}

extension EndpointName {
    /// An endpoint as it is written, with the name of the interface of a link-local address.
    fileprivate init(_ endpoint: Endpoint) {
        let zone = endpoint.scope == 0 ? "" : "%\(InterfaceNumber.name(endpoint.scope) ?? String(endpoint.scope))"
        self.init(host: "\(endpoint.address)\(zone)", port: endpoint.port)
    }
}

extension SecretKey {
    /// A key that may be missing.
    fileprivate convenience init?(_ memory: consuming SecretMemory?) {
        switch consume memory {
        case .some(let memory): self.init(memory)
        case .none: return nil
        }
    }
}
