internal import ByteAccess
internal import IPPacket
internal import WireGuard

/// The way of answers into the TUN device, for queries that came out of it.
struct TunnelAnswers: ~Copyable {
    private let tun: TUNDevice
    private var packet: [UInt8] = []

    /// Answers go to a queue of the device.
    init(_ tun: consuming TUNDevice) {
        self.tun = tun
    }

    /// Gives a client its answer, which comes from the server that it asked. One that the kernel has no room for is lost, as on any
    /// link.
    mutating func send(_ answer: RawSpan, to client: Endpoint, from server: Endpoint) {
        var buffer = packet
        packet = []
        if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: TUNDevice.maximumPacketLength) }
        var span = buffer.mutableSpan
        var output = span.mutableOctets
        if let count = UDPPacket.write(
            answer, from: (server.address, server.port), to: (client.address, client.port), into: &output)
        {
            _ = try? tun.write(output.bytes.extracting(..<count))
        }
        packet = buffer
    }
}
