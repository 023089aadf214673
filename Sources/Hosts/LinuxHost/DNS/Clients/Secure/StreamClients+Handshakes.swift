internal import IPPacket

extension StreamClients {
    /// How many clients are shaking hands.
    var handshakeCount: Int { slots.reduce(0) { $0 + ($1?.isShakingHands == true ? 1 : 0) } }

    /// Has room for one more client that shakes hands: closes the one of its own network that has been at it for longest, or of the
    /// network that has most of all. A client that is quick gets through, whoever else there is.
    mutating func makeHandshakeRoom(for address: IPAddress, _ loop: borrowing EventLoop) {
        let own = ClientNetwork(of: address)
        // More than one has to go when a reload has set lower limits.
        while true {
            var networks: [ClientNetwork: Int] = [:]
            for case let client? in slots where client.isShakingHands {
                networks[ClientNetwork(of: client.address), default: 0] += 1
            }
            let isOwnFull = !address.isLoopback && networks[own, default: 0] >= handshakeLimits.perClient
            guard isOwnFull || networks.values.reduce(0, +) >= handshakeLimits.all else { return }
            displaceHandshake(isOwnFull ? [own: 0] : networks, loop)
        }
    }

    /// Closes the handshake that has been under way for longest, among those of the network with the highest number.
    private mutating func displaceHandshake(_ networks: [ClientNetwork: Int], _ loop: borrowing EventLoop) {
        var found: (client: StreamClient, size: Int)?
        for case let client? in slots where client.isShakingHands {
            guard let size = networks[ClientNetwork(of: client.address)] else { continue }
            if let found {
                guard size >= found.size else { continue }
                if size == found.size, client.lastActivity >= found.client.lastActivity { continue }
            }
            found = (client, size)
        }
        guard let found else { return }
        counts.displaced &+= 1
        secureCounts.displacedHandshakes &+= 1
        remove(found.client, loop)
    }
}
