internal import ByteAccess
internal import IPPacket
internal import Provider
public import WireGuard

extension QuickConfiguration {
    /// The configuration as a wg-quick file, in the order in which `wg-quick save` writes one. Reading it gives an equal
    /// configuration.
    ///
    /// The memory is as long as the file and is wiped when its owner, the caller, lets go of it.
    public func file() -> SecretMemory {
        var counter = QuickConfigurationWriter(memory: nil)
        counter.write(self)
        var writer = QuickConfigurationWriter(memory: SecretMemory(byteCount: counter.count))
        writer.write(self)
        return writer.finish()
    }
}

/// Writes a wg-quick file into memory that is long enough or, without any, counts how long it has to be.
private struct QuickConfigurationWriter: ~Copyable {
    private var memory: SecretMemory?
    private(set) var count = 0

    init(memory: consuming SecretMemory?) {
        self.memory = memory
    }

    consuming func finish() -> SecretMemory {
        switch consume memory {
        case .some(let memory): return memory
        case .none: preconditionFailure("a writer that only counts has no file")
        }
    }

    mutating func write(_ configuration: QuickConfiguration) {
        let tunnel = configuration.tunnel
        write("[Interface]\n")
        for address in tunnel.addresses { write(.address, address.description) }
        for server in tunnel.dnsServers { write(.dns, server.description) }
        for domain in tunnel.searchDomains { write(.dns, domain) }
        if let mtu = tunnel.mtu { write(.mtu, String(mtu)) }
        switch configuration.table {
        case .automatic: break
        case .off: write(.table, "off")
        case .number(let number): write(.table, String(number))
        }
        if configuration.savesConfiguration { write(.saveConfig, "true") }
        let hooks = configuration.hooks
        for command in hooks.preUp { write(.preUp, command) }
        for command in hooks.postUp { write(.postUp, command) }
        for command in hooks.preDown { write(.preDown, command) }
        for command in hooks.postDown { write(.postDown, command) }
        if tunnel.listenPort != 0 { write(.listenPort, String(tunnel.listenPort)) }
        if let mark = tunnel.firewallMark { write(.firewallMark, "0x" + String(mark, radix: 16)) }
        if let key = tunnel.privateKey { write(.privateKey, key) }
        for peer in tunnel.peers { write(peer) }
    }

    private mutating func write(_ peer: PeerConfiguration) {
        write("\n[Peer]\n")
        write(key: .publicKey)
        write(peer.publicKey.bytes)
        if let key = peer.presharedKey { write(.presharedKey, key) }
        if !peer.allowedIPs.isEmpty {
            write(.allowedIPs, peer.allowedIPs.map(\.description).joined(separator: ", "))
        }
        if let endpoint = peer.endpoint {
            let host = endpoint.host.utf8.contains(UInt8(ascii: ":")) ? "[\(endpoint.host)]" : endpoint.host
            write(.endpoint, "\(host):\(endpoint.port)")
        }
        if let seconds = peer.persistentKeepaliveSeconds { write(.persistentKeepalive, String(seconds)) }
    }

    private mutating func write(_ key: QuickConfigurationKey, _ value: String) {
        write(key: key)
        write(value)
        write("\n")
    }

    private mutating func write(_ key: QuickConfigurationKey, _ value: SecretKey) {
        write(key: key)
        value.withBytes { write($0) }
    }

    private mutating func write(key: QuickConfigurationKey) {
        write(key.rawValue)
        write(" = ")
    }

    private mutating func write(_ text: String) {
        memory?.withMutableBytes { bytes in
            var offset = count
            for byte in text.utf8 {
                bytes.store(byte, at: offset)
                offset += 1
            }
        }
        count += text.utf8.count
    }

    /// Writes 32 bytes as base64, and the end of the line.
    private mutating func write(_ key: RawSpan) {
        let offset = count
        memory?.withMutableBytes { bytes in KeyText.encode(key, into: &bytes, at: offset) }
        count += KeyText.characterCount
        write("\n")
    }
}
