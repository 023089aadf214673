internal import ByteAccess
internal import IPPacket
internal import Synchronization
internal import WireGuard

/// Where the threads that move packets leave the DNS queries that programs send through the TUN device, to whatever server, until the
/// proxy's own thread takes them.
///
/// What the proxy itself asks by plain UDP is no such query, lest it be asked by itself without end: it is told by its port.
final class QueryInbox: Sendable {
    /// A query that was taken off the TUN.
    struct Query: Sendable {
        /// Who asks.
        var client: Endpoint
        /// Who would have been asked.
        var server: Endpoint
        /// What is in the datagram.
        var bytes: [UInt8]
    }

    /// The port of DNS servers.
    private static let servicePort: UInt16 = 53
    /// How many queries may wait: a burst of one turn, many times over.
    private static let limit = 4096

    private struct State {
        var queries: [Query] = []
        var dropped: UInt64 = 0
    }

    /// Readable when there are queries.
    let wakeUp: WakeUp
    private let state = Mutex(State())
    /// The ports that the proxy asks from.
    let ownPorts = OwnPorts()
    private let isOpenFlag = Atomic(false)

    /// An inbox that takes nothing yet.
    init() throws(SystemCallError) {
        wakeUp = try WakeUp()
    }

    /// True while queries are taken: while somebody answers them.
    var isOpen: Bool {
        get { isOpenFlag.load(ordering: .relaxed) }
        set { isOpenFlag.store(newValue, ordering: .relaxed) }
    }

    /// How many queries were lost because too many waited.
    var droppedCount: UInt64 { state.withLock { $0.dropped } }

    /// Takes a packet, or all that a super-packet stands for, when it asks a DNS server by UDP. False when it does not: it goes its
    /// way then. Any thread may call it.
    func take(_ packet: SuperPacket, _ bytes: RawSpan) -> Bool {
        guard isOpen, isQuery(packet.ipHeader, bytes) else { return false }
        guard packet.segmentCount > 1 else {
            if let query = Self.query(in: bytes) { put([query]) }
            return true
        }
        var queries: [Query] = []
        var segment = [UInt8](repeating: 0, count: packet.segmentLength)
        for index in 0..<packet.segmentCount {
            var span = segment.mutableSpan
            var output = span.mutableOctets
            packet.writeSegment(index, of: bytes, into: &output)
            if let query = Self.query(in: output.bytes) { queries.append(query) }
        }
        put(queries)
        return true
    }

    /// Takes out what is there.
    func takeAll() -> [Query] {
        state.withLock { state in
            let taken = state.queries
            state.queries = []
            return taken
        }
    }

    /// True for a whole UDP datagram to port 53, without headers between IP's and UDP's.
    private func isQuery(_ header: IPHeader, _ bytes: RawSpan) -> Bool {
        guard header.protocolNumber == .udp, header.totalLength >= header.headerLength + 8,
            bytes.bigEndianUInt16(at: header.headerLength + 2) == Self.servicePort,
            header.version == .v6 || bytes.bigEndianUInt16(at: 6) & 0x3FFF == 0
        else { return false }
        return !ownPorts.contains(bytes.bigEndianUInt16(at: header.headerLength), .udp)
    }

    private static func query(in packet: RawSpan) -> Query? {
        guard let layout = try? PacketLayout(parsing: packet), let flow = layout.fiveTuple else { return nil }
        return Query(
            client: Endpoint(address: flow.source, port: flow.sourcePort),
            server: Endpoint(address: flow.destination, port: flow.destinationPort),
            bytes: [UInt8](copying: packet.extracting(layout.payload)))
    }

    private func put(_ queries: [Query]) {
        let isFirst = state.withLock { state in
            let isFirst = state.queries.isEmpty
            let room = Self.limit - state.queries.count
            state.queries += queries.prefix(room)
            state.dropped += UInt64(max(0, queries.count - room))
            return isFirst
        }
        if isFirst { wakeUp.signal() }
    }
}
