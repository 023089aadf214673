internal import ByteAccess

/// A key of a wg-quick file, as wg-quick(8) and wg(8) spell it. Case does not matter when it is read.
public enum QuickConfigurationKey: String, CaseIterable, Hashable, Sendable {
    case privateKey = "PrivateKey"
    case listenPort = "ListenPort"
    case firewallMark = "FwMark"
    case address = "Address"
    case dns = "DNS"
    case mtu = "MTU"
    case table = "Table"
    case preUp = "PreUp"
    case postUp = "PostUp"
    case preDown = "PreDown"
    case postDown = "PostDown"
    case saveConfig = "SaveConfig"
    case publicKey = "PublicKey"
    case presharedKey = "PresharedKey"
    case allowedIPs = "AllowedIPs"
    case endpoint = "Endpoint"
    case persistentKeepalive = "PersistentKeepalive"

    /// The section that the key belongs in.
    public var section: QuickConfigurationSection {
        switch self {
        case .publicKey, .presharedKey, .allowedIPs, .endpoint, .persistentKeepalive: .peer
        default: .interface
        }
    }

    /// True when a section can have the key several times, each adding to those before.
    public var isRepeatable: Bool {
        switch self {
        case .address, .dns, .preUp, .postUp, .preDown, .postDown, .allowedIPs: true
        default: false
        }
    }
}

/// A section of a wg-quick file.
public enum QuickConfigurationSection: String, CaseIterable, Hashable, Sendable {
    case interface = "Interface"
    case peer = "Peer"

    /// The keys that belong in the section.
    public var keys: [QuickConfigurationKey] { QuickConfigurationKey.allCases.filter { $0.section == self } }
}

extension RawSpan {
    /// True when the bytes are the ASCII text `word` in any case.
    func isSpelled(_ word: String) -> Bool {
        guard byteCount == word.utf8.count else { return false }
        var offset = 0
        for byte in word.utf8 {
            if lowercased(uint8(at: offset)) != lowercased(byte) { return false }
            offset += 1
        }
        return true
    }

    private func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
    }
}
