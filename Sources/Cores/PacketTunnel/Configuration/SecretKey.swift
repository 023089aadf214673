import ByteAccess
public import WireGuard

/// A private or preshared key of 32 bytes in memory that is overwritten when its last owner lets go of it. It can be copied like
/// a value without the bytes being copied, and it has no text.
public final class SecretKey: Equatable, Sendable {
    /// The number of bytes of a key.
    public static let byteCount = 32

    private let memory: SecretMemory

    /// Takes over 32 bytes.
    public init(_ memory: consuming SecretMemory) {
        precondition(memory.byteCount == Self.byteCount, "a key has 32 bytes")
        self.memory = memory
    }

    /// Calls `body` with the bytes.
    public func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try memory.withBytes(body)
    }

    /// True when both keys have the same bytes. It takes the same time whether they differ early, late or not at all.
    public static func == (left: SecretKey, right: SecretKey) -> Bool {
        left.withBytes { left in
            right.withBytes { right in
                var difference: UInt8 = 0
                for offset in 0..<byteCount { difference |= left.uint8(at: offset) ^ right.uint8(at: offset) }
                return difference == 0
            }
        }
    }
}
