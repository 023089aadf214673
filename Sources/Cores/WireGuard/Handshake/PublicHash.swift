import ByteAccess

/// A 32-byte BLAKE2s hash of public data: protocol labels and public keys.
struct PublicHash: Sendable {
    private var storage = InlineArray<32, UInt8>(repeating: 0)

    /// HASH(label).
    init(_ label: String) {
        var state = BLAKE2s()
        state.update(label.utf8Span.span.octets)
        finish(&state)
    }

    /// HASH(prefix ‖ label).
    init(_ label: String, after prefix: RawSpan) {
        var state = BLAKE2s()
        state.update(prefix)
        state.update(label.utf8Span.span.octets)
        finish(&state)
    }

    /// HASH(label ‖ suffix).
    init(_ label: String, before suffix: RawSpan) {
        var state = BLAKE2s()
        state.update(label.utf8Span.span.octets)
        state.update(suffix)
        finish(&state)
    }

    var bytes: RawSpan {
        @_lifetime(borrow self) get { storage.span.octets }
    }

    private mutating func finish(_ state: inout BLAKE2s) {
        var span = storage.mutableSpan
        var output = span.mutableOctets
        state.finalize(into: &output)
    }
}
