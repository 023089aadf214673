import ByteAccess

/// A Curve25519 public key: what names a peer.
public struct PublicKey: Hashable, Sendable {
    /// The 32 bytes, as four words in memory order.
    private var words: InlineArray<4, UInt64>

    /// The number of bytes of a key.
    public static let byteCount = 32

    /// The key in `bytes`, which must be 32 long.
    public init(_ bytes: RawSpan) {
        precondition(bytes.byteCount == Self.byteCount, "a public key has 32 bytes")
        words = InlineArray { bytes.littleEndianUInt64(at: $0 * 8) }
    }

    /// The 32 bytes of the key.
    public var bytes: RawSpan {
        @_lifetime(borrow self) get { words.span.octets }
    }

    /// True when both keys have the same bytes.
    public static func == (left: PublicKey, right: PublicKey) -> Bool {
        left.words[0] == right.words[0] && left.words[1] == right.words[1] && left.words[2] == right.words[2]
            && left.words[3] == right.words[3]
    }

    /// Feeds the bytes of the key to `hasher`.
    public func hash(into hasher: inout Hasher) {
        for index in words.indices { hasher.combine(words[index]) }
    }
}
