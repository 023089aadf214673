internal import IPPacket
internal import Provider
internal import WireGuard

/// Looks after each change of the routes whether the kernel would still send by the interfaces that are cached for the peers, and
/// lets the device forget what is no longer right.
struct PathReview: ~Copyable {
    /// How long after a change paths are looked at again: once the changes that come together are there, and some more times,
    /// since what a peer had under way to our old address brings that back until the peer hears from the new.
    private static let delays: [Interval] = [.milliseconds(20), .milliseconds(200), .seconds(1), .seconds(3)]

    /// Tells of changes, and answers questions about routes.
    let home: NetlinkConnection
    /// When to look next; nil for not before the next change.
    private(set) var deadline: Instant?
    /// How many times it was looked since the last change.
    private var count = 0

    init(_ home: consuming NetlinkConnection) {
        self.home = home
    }

    /// Reads which changes there were.
    mutating func readChanges() {
        var isRelevant = false
        do {
            try home.readChanges { _ in isRelevant = true }
        } catch {
            isRelevant = true
        }
        if isRelevant, deadline == nil || count > 0 {
            count = 0
            deadline = HostClock.now() + Self.delays[0]
        }
    }

    /// Lets the device forget our end of the way to those peers for which the kernel would choose another interface now, if it is
    /// time to look.
    mutating func look(at shared: SharedDevice) {
        guard let deadline, deadline <= HostClock.now() else { return }
        count += 1
        self.deadline = count < Self.delays.count ? HostClock.now() + Self.delays[count] : nil
        shared.lock()
        defer { shared.unlock() }
        let mark = shared.device.firewallMark
        shared.device.reviewSources { path in
            guard let source = path.source else { return true }
            let route = try? home.route(
                to: path.remote.address, from: source.address, mark: mark, interface: path.remote.scope)
            return route?.interfaceIndex == source.interfaceIndex
        }
    }
}
