/// Which servers of a group are asked first.
public enum UpstreamStrategy: UInt8, Hashable, Sendable, BitwiseCopyable, CaseIterable {
    /// The first in the order of the configuration; the next one when it fails, or is slow.
    case ordered
    /// The one that has been the fastest lately, and the others in the order of their times. Now and then another is asked beside it, so
    /// that it is known how fast they are.
    case fastest
    /// Up to three at once. The first answer counts, and what a server could not answer is left to the others.
    case parallel
}
