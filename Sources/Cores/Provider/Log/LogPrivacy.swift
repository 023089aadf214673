/// What becomes of the private parts of a log's lines.
public struct LogPrivacy: Equatable, Sendable {
    /// True to print private values as they are.
    public var showPrivate: Bool
    /// The key of the hashes that stand for private values which have to be told apart. A host draws one at its start and keeps
    /// it to itself: with a key that is known, a hash can be looked up among all addresses. Nil for no hashes.
    public var hashKey: SipHashKey?

    /// How private parts are printed; without arguments not at all.
    public init(showPrivate: Bool = false, hashKey: SipHashKey? = nil) {
        self.showPrivate = showPrivate
        self.hashKey = hashKey
    }
}
