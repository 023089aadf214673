/// What became of datagrams at listening sockets, counted from the start.
struct DatagramCounts: Equatable, Sendable {
    /// How many came in.
    var received: UInt64 = 0
    /// How many the kernel dropped because nobody read them in time: by the sockets that are open.
    var overrun: UInt64 = 0
    /// How many answers the kernel took.
    var sent: UInt64 = 0
    /// How many answers were dropped because a socket's buffer, or the network's, was full.
    var bufferFull: UInt64 = 0
    /// How many answers could not be sent for another reason: no route, a firewall, an address or a socket that is gone.
    var failed: UInt64 = 0

    /// Counts what another thread counted, too.
    mutating func add(_ other: DatagramCounts) {
        received &+= other.received
        overrun &+= other.overrun
        sent &+= other.sent
        bufferFull &+= other.bufferFull
        failed &+= other.failed
    }
}

/// What became of clients' connections, counted from the start.
struct StreamCounts: Equatable, Sendable {
    /// How many are connected now.
    var connected = 0
    /// How many were taken.
    var accepted: UInt64 = 0
    /// How many were turned away: no room, or the proxy takes none.
    var refused: UInt64 = 0
    /// How many were closed because a new one needed the place and they were the idlest.
    var displaced: UInt64 = 0
    /// How many were closed because they were idle, or did not read, for too long.
    var timedOut: UInt64 = 0
    /// How many sent something that is no message's length.
    var malformed: UInt64 = 0
    /// How many were closed because half-read queries and unsent answers of all clients took too much memory, of which they had most.
    var overfull: UInt64 = 0
    /// How many went away while queries of theirs were waiting.
    var left: UInt64 = 0
}

/// What became of clients, counted from the start.
struct ClientCounts: Equatable, Sendable {
    /// By UDP, over all threads.
    var datagrams = DatagramCounts()
    /// By TCP, with TLS or without.
    var streams = StreamCounts()
    /// By TLS.
    var secure = SecureCounts()
}
