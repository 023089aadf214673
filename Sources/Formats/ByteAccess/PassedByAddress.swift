public import Synchronization

/// Has the value that it is a field of handed to functions by its address. It holds nothing.
///
/// The compiler hands a value to a method that does not change it by its bits, even one that cannot be copied: of a large one it makes
/// a copy on the stack for each such call, and for each element that is read of an `InlineArray` in it. Of a value whose bits must not
/// move, as those of an atomic, it never does. So this belongs into noncopyable values of more than a few words that are used on hot
/// paths; bytes have been moved for nothing otherwise, kilobytes for each packet or query.
public struct PassedByAddress: ~Copyable, Sendable {
    @usableFromInline let anchor: Atomic<UInt8>

    /// For a field of any value.
    @inlinable
    public init() { anchor = Atomic(0) }
}
