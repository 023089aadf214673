internal import ByteAccess

/// HMAC (RFC 2104) over BLAKE2s with 32 bytes of output.
enum HMACBLAKE2s {
    /// Writes the 32-byte code of the concatenation of `first` and `second` to `output`, which may not overlap the inputs.
    static func authenticate(
        key: RawSpan, _ first: RawSpan, _ second: RawSpan = RawSpan(), into output: inout MutableRawSpan
    ) {
    }
}

/// KDF1, KDF2 and KDF3 of the WireGuard paper: HKDF (RFC 5869) over HMAC-BLAKE2s with the chaining key as its salt and no
/// info. Every output has 32 bytes.
enum KeyDerivation {
    /// KDF1.
    static func derive(chainingKey: RawSpan, input: RawSpan, into first: inout MutableRawSpan) {
    }

    /// KDF2.
    static func derive(
        chainingKey: RawSpan, input: RawSpan, into first: inout MutableRawSpan, _ second: inout MutableRawSpan
    ) {
    }

    /// KDF3.
    static func derive(
        chainingKey: RawSpan, input: RawSpan, into first: inout MutableRawSpan, _ second: inout MutableRawSpan,
        _ third: inout MutableRawSpan
    ) {
    }

    /// KDF1, the output of which replaces the chaining key.
    static func derive(updating chainingKey: inout MutableRawSpan, input: RawSpan) {
    }

    /// KDF2, the first output of which replaces the chaining key.
    static func derive(updating chainingKey: inout MutableRawSpan, input: RawSpan, into second: inout MutableRawSpan) {
    }

    /// KDF3, the first output of which replaces the chaining key.
    static func derive(
        updating chainingKey: inout MutableRawSpan, input: RawSpan, into second: inout MutableRawSpan,
        _ third: inout MutableRawSpan
    ) {
    }
}
