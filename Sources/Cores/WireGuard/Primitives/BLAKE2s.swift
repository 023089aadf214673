internal import ByteAccess

struct BLAKE2s: ~Copyable {
    init(outputLength: Int = 32) {
    }
    init(key: RawSpan, outputLength: Int) {
    }
    mutating func update(_ bytes: RawSpan) {
    }
    mutating func finalize(into output: inout MutableRawSpan) {
    }
    /// Writes the 32-byte hash of `first` followed by `second` to `output`, which may not overlap them.
    static func hash(_ first: RawSpan, _ second: RawSpan = RawSpan(), into output: inout MutableRawSpan) {
    }
    /// Replaces the 32 bytes of `state` with the hash of themselves followed by `bytes`: Noise's MixHash.
    static func mix(_ bytes: RawSpan, into state: inout MutableRawSpan) {
    }
}
