internal import IPPacket

extension DNSConfiguration {
    /// Where the machine's resolver can ask the proxy, at port 53: at loopback addresses where there are any, else at those that
    /// are listened at. Empty when it cannot.
    var systemResolverAddresses: [IPAddress] {
        var seen: Set<IPAddress> = []
        let reachable = listen.filter { $0.port == 53 }.map { Self.reachable($0.address) }.filter {
            seen.insert($0).inserted
        }
        let loopbacks = reachable.filter(\.isLoopback)
        return loopbacks.isEmpty ? reachable : loopbacks
    }

    /// The address of the machine itself at which somebody answers who listens at this one.
    private static func reachable(_ address: IPAddress) -> IPAddress {
        guard address.isUnspecified else { return address }
        return switch address {
        case .v4: .v4(IPv4Address(127, 0, 0, 1))
        case .v6: .v6(IPv6Address(high: 0, low: 1))
        }
    }
}

extension ConfigurationField {
    /// Checks what `dns` must have for the machine's resolver to be pointed at the proxy.
    func checkSystemResolver(_ dns: DNSConfiguration) {
        if dns.systemResolverAddresses.isEmpty {
            note(.conflict("needs an address with port 53 in dns.listen: the machine's resolver asks at no other port"))
        }
        // Where systemd-resolved takes questions from programs of the machine.
        let stubs: [IPAddress] = [.v4(IPv4Address(127, 0, 0, 53)), .v4(IPv4Address(127, 0, 0, 54))]
        let hosts = dns.upstreams.map(\.host)
        if stubs.contains(where: { hosts.contains(.address($0)) })
            || dns.bootstrap.contains(where: { stubs.contains($0.address) })
        {
            note(
                .conflict(
                    "cannot be with systemd-resolved (127.0.0.53) as an upstream or in dns.bootstrap: it would ask here"
                ))
        }
    }
}
