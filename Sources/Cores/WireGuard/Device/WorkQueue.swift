/// The peers that have something to do, first come, first served. Each stands in it at most once.
struct WorkQueue {
    private var peers: [PeerIndex] = []
    private var head = 0

    var isEmpty: Bool { head == peers.count }
    var first: PeerIndex? { isEmpty ? nil : peers[head] }

    mutating func append(_ peer: PeerIndex) {
        peers.append(peer)
    }

    mutating func removeFirst() {
        head += 1
        if head == peers.count {
            peers.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 1024, head * 2 >= peers.count {
            peers.removeFirst(head)
            head = 0
        }
    }

    /// Takes `peer` out, wherever it stands.
    mutating func remove(_ peer: PeerIndex) {
        if let position = peers[head...].firstIndex(of: peer) { peers.remove(at: position) }
        if head == peers.count {
            peers.removeAll(keepingCapacity: true)
            head = 0
        }
    }
}
