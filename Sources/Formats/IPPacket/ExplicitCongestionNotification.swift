/// The low two bits of the traffic class (RFC 3168 §5).
public enum ExplicitCongestionNotification: UInt8, Hashable, Sendable, BitwiseCopyable {
    /// The ends do not speak ECN.
    case notECT = 0
    /// ECN-capable transport, ECT(1): also the identifier of L4S (RFC 9331).
    case ect1 = 1
    /// ECN-capable transport, ECT(0).
    case ect0 = 2
    /// Congestion experienced.
    case ce = 3

    /// The bits of a TOS or traffic class byte.
    @inlinable
    public init(trafficClass: UInt8) {
        self =
            switch trafficClass & 3 {
            case 0: .notECT
            case 1: .ect1
            case 2: .ect0
            default: .ce
            }
    }

    /// True for ECT(0) and ECT(1).
    @inlinable
    public var isECNCapableTransport: Bool { self == .ect0 || self == .ect1 }
}
