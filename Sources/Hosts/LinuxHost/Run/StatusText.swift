internal import ByteAccess
internal import IPPacket
internal import PacketTunnel
internal import Provider
internal import WireGuard

/// The status as a line of JSON: what the provider says, and what is counted.
struct StatusText {
    /// What the provider says.
    var status: TunnelStatus
    /// The name of the interface; nil without one.
    var interfaceName: String?
    /// The interface's MTU in bytes.
    var maximumTransmissionUnit: Int?
    /// The port of the sockets.
    var listenPort: UInt16?
    /// The firewall mark of the sockets.
    var firewallMark: UInt32 = 0
    /// The routing table of the tunnel's own; nil when it has none.
    var table: UInt32?
    /// How many threads move packets.
    var workers = 0
    /// What became of the offloads.
    var offloads: OffloadState?
    /// What the device counted of each peer.
    var peers: [PeerSnapshot] = []
    /// What was dropped, by reason.
    var drops: [(DropReason, UInt64)] = []
    /// How the DNS proxy is doing; nil without one.
    var dns: DNSServiceStatus?
    /// Who keeps the machine's resolver while it is pointed here; nil when it is not.
    var resolverKeeper: ResolverKeeper?
    /// The line.
    var json: JSONText {
        var members: [(String, JSONText)] = [
            ("revision", .number(status.revision)),
            ("status", .string(status.status.description)),
            ("reason", .optional(status.reason?.description)),
            ("asleep", .boolean(status.isAsleep)),
            ("memory", .string(status.memoryLevel.description)),
            ("interface", .optional(interfaceName)),
            ("mtu", .optional(maximumTransmissionUnit)),
            ("listenPort", .optional(listenPort)),
        ]
        members.append(("firewallMark", firewallMark == 0 ? .null : .number(UInt64(firewallMark))))
        members.append(("table", .optional(table)))
        members.append(("settings", status.settings.map { Self.settings($0) } ?? .null))
        members.append(("workers", .number(UInt64(workers))))
        members.append(("offloads", offloads.map { Self.offloads($0) } ?? .null))
        members.append(("dns", dns?.json ?? .null))
        members.append(("systemResolver", .optional(resolverKeeper?.rawValue)))
        members.append(("peers", .array(status.peers.map { peer($0) })))
        members.append(("drops", .object(drops.map { ("\($0.0)", JSONText.number($0.1)) })))
        return .object(members)
    }

    private static func settings(_ settings: PacketTunnelNetworkSettings) -> JSONText {
        .object([
            ("addresses", .strings(settings.addresses)), ("includedRoutes", .strings(settings.includedRoutes)),
            ("excludedRoutes", .strings(settings.excludedRoutes)),
            ("dnsServers", .strings(settings.dnsSettings?.servers ?? [])),
            ("searchDomains", .strings(settings.dnsSettings?.searchDomains ?? [])),
            ("matchDomains", settings.dnsSettings?.matchDomains.map { .strings($0) } ?? .null),
        ])
    }

    private static func offloads(_ state: OffloadState) -> JSONText {
        .object([
            (
                "tun",
                .object([
                    ("tcp", .string(state.tunTCP.description)), ("udp", .string(state.tunUDP.description)),
                    ("write", .string(state.tunWrite.description)),
                ])
            ),
            (
                "udpSegment",
                .object([
                    ("ipv4", .string(state.udpSegmentV4.description)),
                    ("ipv6", .string(state.udpSegmentV6.description)),
                    ("restrictedDestinations", .number(UInt64(state.restrictedDestinations))),
                ])
            ),
            ("udpGRO", .string(state.udpGRO.description)),
        ])
    }

    private func peer(_ peer: PeerStatus) -> JSONText {
        let counted = peers.first { $0.publicKey == peer.publicKey }
        let endpoint = counted?.endpoint ?? peer.endpoint
        return .object([
            ("publicKey", .string(Self.base64(peer.publicKey))),
            ("endpointName", .optional(peer.endpointName.map(Self.text))),
            ("endpoint", .optional(endpoint.map { $0.text(interfaceName: InterfaceNumber.name) })),
            ("allowedIPs", .strings(peer.allowedIPs)),
            ("persistentKeepaliveSeconds", .optional(peer.persistentKeepaliveSeconds)),
            ("handshake", .string(peer.handshake.text)),
            ("lastHandshakeSeconds", .optional(counted?.lastHandshake?.seconds)),
            ("receivedBytes", .number(counted?.receivedBytes ?? 0)), ("sentBytes", .number(counted?.sentBytes ?? 0)),
        ])
    }

    private static func text(_ name: EndpointName) -> String {
        name.host.utf8.contains(UInt8(ascii: ":")) ? "[\(name.host)]:\(name.port)" : "\(name.host):\(name.port)"
    }

    private static func base64(_ key: PublicKey) -> String {
        var text = [UInt8](repeating: 0, count: KeyText.characterCount)
        var span = text.mutableSpan
        var bytes = span.mutableOctets
        KeyText.encode(key.bytes, into: &bytes, at: 0)
        return String(decoding: text, as: UTF8.self)
    }
}

extension PeerStatus.Handshake {
    /// A word for it.
    fileprivate var text: String {
        switch self {
        case .none: "none"
        case .completed: "completed"
        case .givenUp: "given up"
        }
    }
}
