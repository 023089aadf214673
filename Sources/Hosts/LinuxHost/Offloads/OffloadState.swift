/// Whether an offload is in use and, if it is not, why.
enum OffloadCondition: Equatable, Sendable {
    /// It is in use.
    case on
    /// It was not asked for.
    case notWanted
    /// The kernel does not have it; with the error number that said so.
    case unsupported(errno: Int32)
    /// The kernel refused it in use; with the error number that said so.
    case refused(errno: Int32)

    /// True while it is in use.
    var isOn: Bool { self == .on }

    /// How far from being in use it is: what of several is told.
    private var severity: Int {
        switch self {
        case .on: 0
        case .notWanted: 1
        case .unsupported: 2
        case .refused: 3
        }
    }

    /// The worse of two.
    static func worse(_ left: OffloadCondition, _ right: OffloadCondition) -> OffloadCondition {
        left.severity < right.severity ? right : left
    }
}

extension OffloadCondition: CustomStringConvertible {
    /// The condition in a word, and the error when there is one.
    var description: String {
        switch self {
        case .on: "on"
        case .notWanted: "off"
        case .unsupported(let error): "not supported (\(SystemCallError("probe", errno: error)))"
        case .refused(let error): "given up (\(SystemCallError("send", errno: error)))"
        }
    }
}

/// What became of the wanted offloads, for a status request and the log.
struct OffloadState: Equatable, Sendable {
    /// Super-packets of TCP at the TUN device.
    var tunTCP: OffloadCondition
    /// Super-packets of UDP at the TUN device.
    var tunUDP: OffloadCondition
    /// Joined super-packets are written to the TUN device whole.
    var tunWrite: OffloadCondition
    /// `UDP_SEGMENT` on the IPv4 socket.
    var udpSegmentV4: OffloadCondition
    /// `UDP_SEGMENT` on the IPv6 socket.
    var udpSegmentV6: OffloadCondition
    /// How many destinations get single datagrams at present because their path carries no whole segments.
    var restrictedDestinations: Int
    /// `UDP_GRO` on the sockets.
    var udpGRO: OffloadCondition

    /// What is to be told of two ways of one interface: where they differ, what is worse.
    func combined(with other: OffloadState) -> OffloadState {
        OffloadState(
            tunTCP: .worse(tunTCP, other.tunTCP), tunUDP: .worse(tunUDP, other.tunUDP),
            tunWrite: .worse(tunWrite, other.tunWrite), udpSegmentV4: .worse(udpSegmentV4, other.udpSegmentV4),
            udpSegmentV6: .worse(udpSegmentV6, other.udpSegmentV6),
            restrictedDestinations: max(restrictedDestinations, other.restrictedDestinations),
            udpGRO: .worse(udpGRO, other.udpGRO))
    }
}

extension OffloadState: CustomStringConvertible {
    /// One line for a log.
    var description: String {
        "tun tcp \(tunTCP), tun udp \(tunUDP), tun write \(tunWrite), udpSegment v4 \(udpSegmentV4), v6 \(udpSegmentV6),"
            + " udpGRO \(udpGRO), \(restrictedDestinations) destinations without trains"
    }
}
