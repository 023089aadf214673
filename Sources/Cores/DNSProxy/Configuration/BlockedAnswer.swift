/// What a client gets instead of what a rule blocks.
public enum BlockedAnswer: String, CaseIterable, Hashable, Sendable {
    /// 0.0.0.0 and `::` for A and AAAA; for all other types that there is nothing.
    case zero
    /// There is no such name, whatever the type.
    case nxdomain
    /// There is nothing of the type.
    case nodata
    /// The server does not want to answer.
    case refused
}
