internal import ByteAccess

/// KDF1, KDF2 and KDF3 of the WireGuard paper: HKDF (RFC 5869) over HMAC-BLAKE2s, with the chaining key as its salt and
/// no info. The chaining key and every output have 32 bytes. The state is wiped; what the
/// calls leave on the stack is for the caller to scrub.
///
/// The `updating` forms replace the chaining key by the first output in place, so that a caller who keeps it in one
/// piece of memory needs no second one.
enum KeyDerivation {
    /// KDF1.
    static func derive(chainingKey: RawSpan, input: RawSpan, into first: inout MutableRawSpan) {
        var extraction = Extraction(chainingKey: chainingKey, input: input)
        extraction.expand(after: RawSpan(), index: 1, into: &first)
        extraction.wipe()
    }

    /// KDF2.
    static func derive(
        chainingKey: RawSpan, input: RawSpan, into first: inout MutableRawSpan, _ second: inout MutableRawSpan
    ) {
        var extraction = Extraction(chainingKey: chainingKey, input: input)
        extraction.expand(after: RawSpan(), index: 1, into: &first)
        extraction.expand(after: first.bytes, index: 2, into: &second)
        extraction.wipe()
    }

    /// KDF3.
    static func derive(
        chainingKey: RawSpan, input: RawSpan, into first: inout MutableRawSpan, _ second: inout MutableRawSpan,
        _ third: inout MutableRawSpan
    ) {
        var extraction = Extraction(chainingKey: chainingKey, input: input)
        extraction.expand(after: RawSpan(), index: 1, into: &first)
        extraction.expand(after: first.bytes, index: 2, into: &second)
        extraction.expand(after: second.bytes, index: 3, into: &third)
        extraction.wipe()
    }

    /// KDF1, the output of which replaces the chaining key.
    static func derive(updating chainingKey: inout MutableRawSpan, input: RawSpan) {
        var extraction = Extraction(chainingKey: chainingKey.bytes, input: input)
        extraction.expand(after: RawSpan(), index: 1, into: &chainingKey)
        extraction.wipe()
    }

    /// KDF2, the first output of which replaces the chaining key.
    static func derive(updating chainingKey: inout MutableRawSpan, input: RawSpan, into second: inout MutableRawSpan) {
        var extraction = Extraction(chainingKey: chainingKey.bytes, input: input)
        extraction.expand(after: RawSpan(), index: 1, into: &chainingKey)
        extraction.expand(after: chainingKey.bytes, index: 2, into: &second)
        extraction.wipe()
    }

    /// KDF3, the first output of which replaces the chaining key.
    static func derive(
        updating chainingKey: inout MutableRawSpan, input: RawSpan, into second: inout MutableRawSpan,
        _ third: inout MutableRawSpan
    ) {
        var extraction = Extraction(chainingKey: chainingKey.bytes, input: input)
        extraction.expand(after: RawSpan(), index: 1, into: &chainingKey)
        extraction.expand(after: chainingKey.bytes, index: 2, into: &second)
        extraction.expand(after: second.bytes, index: 3, into: &third)
        extraction.wipe()
    }
}

/// HKDF's pseudorandom key, between its extract and expand steps.
private struct Extraction: ~Copyable {
    private var key = InlineArray<32, UInt8>(repeating: 0)

    init(chainingKey: RawSpan, input: RawSpan) {
        precondition(chainingKey.byteCount == 32, "a chaining key has 32 bytes")
        var span = key.mutableSpan
        var bytes = span.mutableOctets
        HMACBLAKE2s.authenticate(key: chainingKey, input, into: &bytes)
    }

    /// Writes output number `index`, which depends on the one before it.
    func expand(after previous: RawSpan, index: UInt8, into output: inout MutableRawSpan) {
        let number = InlineArray<1, UInt8>(repeating: index)
        HMACBLAKE2s.authenticate(key: key.span.octets, previous, number.span.octets, into: &output)
    }

    mutating func wipe() {
        var span = key.mutableSpan
        var bytes = span.mutableOctets
        WireGuard.wipe(&bytes)
    }
}
