public import IPPacket
public import WireGuard

/// One change of a WireGuard device. Peers are named by their keys: numbers are the device's own.
public enum DeviceChange: Equatable, Sendable {
    /// Set the private key, or take it away.
    case setPrivateKey(SecretKey?)
    /// Add a peer that there is not yet.
    case addPeer(PublicKey)
    /// Remove a peer with everything of it.
    case removePeer(PublicKey)
    /// Remove every peer.
    case removeAllPeers
    /// Set the key that both ends share, or take it away.
    case setPresharedKey(SecretKey?, of: PublicKey)
    /// Set where a peer is reached.
    case setEndpoint(Endpoint, of: PublicKey)
    /// Set after how many seconds of silence an empty message goes out; nil for never.
    case setPersistentKeepalive(UInt16?, of: PublicKey)
    /// Give a prefix to a peer, from whoever has it.
    case addAllowedIP(IPPrefix, for: PublicKey)
    /// Take a prefix from a peer.
    case removeAllowedIP(IPPrefix, of: PublicKey)
    /// Bring the device's link up or down. Down ends all sessions and keeps everything else.
    case setLink(up: Bool)
}
