internal import Provider
internal import WireGuard

extension PacketTunnelProvider {
    /// Asks for the names of `list` that are not numbers, each once.
    mutating func lookUp(_ list: [PeerConfiguration], at now: Instant) -> EndpointResolution {
        var resolution = EndpointResolution(deadline: now + timings.resolution)
        var seen: Set<EndpointName> = []
        for peer in list {
            guard let name = peer.endpoint, name.numericEndpoint == nil, seen.insert(name).inserted else { continue }
            let id = nextOperation()
            resolution.add(name, id)
            emit(.resolve(name, id, deadline: resolution.deadline))
        }
        return resolution
    }

    /// Gives up what is not answered yet.
    mutating func giveUp(_ resolution: inout EndpointResolution) {
        for id in resolution.giveUp() { emit(.cancelResolve(id)) }
    }

    /// A name is looked up, for whoever wanted it.
    mutating func resolved(
        _ id: OperationID, _ result: Result<[Endpoint], ResolutionFailure>, at now: Instant
    ) {
        switch phase {
        case .connecting(var startup):
            guard case .resolving(var resolution) = startup.step, resolution.finish(id, result) else { return }
            startup.step = .resolving(resolution)
            phase = .connecting(startup)
            continueStartup(at: now)
        case .connected(var connection):
            if case .resuming(let lost, var resolution) = connection.connectivity, resolution.finish(id, result) {
                connection.connectivity = .resuming(lost: lost, resolution)
                phase = .connected(connection)
                continueResumption(at: now)
            } else {
                reloadResolved(id, result, at: now)
            }
        case .disconnected, .disconnecting:
            break
        }
    }

    /// Where a name leads: the number that it is, what was found, or else where it led before.
    mutating func endpoint(
        of name: EndpointName, in resolution: EndpointResolution
    ) -> Result<Endpoint, ResolutionFailure> {
        if let endpoint = name.numericEndpoint { return .success(endpoint) }
        if let found = resolution.found[name], let endpoint = preferred(of: found) {
            if peers.remembered[name] == nil { peers.remember(endpoint, for: name) }
            return .success(endpoint)
        }
        let failure = resolution.failed[name] ?? .temporaryFailure
        guard let endpoint = peers.remembered[name] else {
            log(.error, "cannot look up \(hashed: name.host): \(failure)")
            return .failure(failure)
        }
        log(.error, "cannot look up \(hashed: name.host): \(failure); using its last address")
        return .success(endpoint)
    }

    func preferred(of endpoints: [Endpoint]) -> Endpoint? {
        guard let path, path.isUsable else { return endpoints.first }
        return path.preferred(of: endpoints)
    }
}
