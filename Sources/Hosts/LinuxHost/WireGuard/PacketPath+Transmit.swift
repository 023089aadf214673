internal import ByteAccess
internal import IPPacket
internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

// From the TUN to the peers.
extension PacketPath {
    /// Moves packets from the TUN to the peers, up to one turn's worth.
    mutating func readTUN() throws(TUNError) {
        let now = HostClock.now()
        var bytes = 0
        var packets = 0
        while packets < Self.packetsPerTurn, bytes < Self.bytesPerTurn, let length = try readPacket(at: now) {
            packets += 1
            bytes += length
        }
        flush(at: now)
        yieldAfterBurst(of: packets, bytes: bytes)
    }

    /// Moves one packet. Returns its length in bytes, or nil when there is none.
    private mutating func readPacket(at now: Instant) throws(TUNError) -> Int? {
        guard let length = try Self.read(from: tun, into: &frame) else { return nil }
        guard let packet = Self.parse(&frame, length: length, headerLength: tun.headerLength) else {
            shared.lock()
            _ = shared.device.dropMalformed()
            shared.unlock()
            return length
        }
        let content = tun.headerLength..<length
        if let queries, Self.take(content, packet, of: &frame, into: queries) { return length }
        switch Self.admit(content, packet, of: &frame, by: shared, icmp: &outgoing, at: now) {
        case .seal(let order):
            var next: Int? = 0
            while let start = next {
                next = Self.seal(
                    content, of: &frame, from: start, by: order, using: cryptography, into: &outgoing)
                if next != nil || isDueForFlush { flush(at: now) }
            }
        case .unreachable(let length, _):
            try Self.write(first: length, of: &outgoing, to: tun)
        case .staged, .dropped:
            break
        }
        return length
    }

    // A span into one part of the path keeps the others from being used, so the steps are given the parts they need.

    private static func read(
        from tun: borrowing TUNDevice, into frame: inout PacketBuffer
    ) throws(TUNError) -> Int? {
        var bytes = frame.bytes()
        return try tun.read(into: &bytes)
    }

    private static func parse(_ frame: inout PacketBuffer, length: Int, headerLength: Int) -> SuperPacket? {
        let storage = frame.bytes()
        let bytes = storage.bytes
        guard length > headerLength else { return nil }
        var header = VirtioNetworkHeader()
        if headerLength > 0 {
            guard let parsed = try? VirtioNetworkHeader(parsing: bytes.extracting(first: VirtioNetworkHeader.byteCount))
            else { return nil }
            header = parsed
        }
        return try? SuperPacket(parsing: bytes.extracting(headerLength..<length), header: header)
    }

    /// True when the packet asks a DNS server and is answered here.
    private static func take(
        _ content: Range<Int>, _ packet: SuperPacket, of frame: inout PacketBuffer, into queries: QueryInbox
    ) -> Bool {
        let storage = frame.bytes()
        return queries.take(packet, storage.bytes.extracting(content))
    }

    private static func admit(
        _ content: Range<Int>, _ packet: SuperPacket, of frame: inout PacketBuffer, by shared: SharedDevice,
        icmp output: inout SendBatch, at now: Instant
    ) -> Admission {
        let storage = frame.bytes()
        let bytes = storage.bytes.extracting(content)
        var error = output.unusedBytes()
        shared.lock()
        defer { shared.unlock() }
        return shared.device.admit(bytes, packet, into: &error, at: now)
    }

    private static func seal(
        _ content: Range<Int>, of frame: inout PacketBuffer, from start: Int,
        by order: SealingOrder, using cryptography: OpenSSLCryptography, into outgoing: inout SendBatch
    ) -> Int? {
        let storage = frame.bytes()
        let bytes = storage.bytes.extracting(content)
        var output = outgoing.unusedBytes()
        let sealed = order.seal(bytes, from: start, into: &output, using: cryptography)
        outgoing.append(sealed.train, order.transmission)
        return sealed.next
    }

    private static func write(
        first length: Int, of outgoing: inout SendBatch, to tun: borrowing TUNDevice
    ) throws(TUNError) {
        let output = outgoing.unusedBytes()
        try write(output.bytes.extracting(first: length), to: tun)
    }

    /// Writes a finished packet to the TUN. One that the kernel does not take is lost, as on any link.
    private static func write(_ packet: RawSpan, to tun: borrowing TUNDevice) throws(TUNError) {
        do {
            _ = try tun.write(packet)
        } catch .linkDown, .packetRefused {
            return
        }
    }
}
