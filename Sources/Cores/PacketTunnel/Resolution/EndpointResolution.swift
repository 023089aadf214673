internal import Provider
internal import WireGuard

/// Names that are looked up together, all within one time limit.
struct EndpointResolution: Sendable {
    /// When what is not answered has failed.
    let deadline: Instant
    private var pending: [PacketTunnelProvider.OperationID: EndpointName] = [:]
    /// The endpoints of the names that have some.
    private(set) var found: [EndpointName: [Endpoint]] = [:]
    /// Why the others have none.
    private(set) var failed: [EndpointName: ResolutionFailure] = [:]

    /// Nothing is looked up yet.
    init(deadline: Instant) {
        self.deadline = deadline
    }

    /// True when every name was answered.
    var isComplete: Bool { pending.isEmpty }

    /// What is looked up still, in the order in which it was asked for.
    var operations: [PacketTunnelProvider.OperationID] { pending.keys.sorted() }

    /// Notes that a name is being looked up.
    mutating func add(_ name: EndpointName, _ id: PacketTunnelProvider.OperationID) {
        pending[id] = name
    }

    /// Takes an answer. False when it is none of these.
    mutating func finish(
        _ id: PacketTunnelProvider.OperationID, _ result: Result<[Endpoint], ResolutionFailure>
    ) -> Bool {
        guard let name = pending.removeValue(forKey: id) else { return false }
        switch result {
        case .success(let endpoints) where endpoints.isEmpty: failed[name] = .noSuchName
        case .success(let endpoints): found[name] = endpoints
        case .failure(let failure): failed[name] = failure
        }
        return true
    }

    /// Gives up what is not answered. Returns the operations to cancel.
    mutating func giveUp() -> [PacketTunnelProvider.OperationID] {
        let operations = operations
        for name in pending.values { failed[name] = .timedOut }
        pending.removeAll()
        return operations
    }
}
