import ByteAccess
import IPPacket
import Provider
import SimulatedHost
import TestSupport
import Testing

@testable import WireGuard

/// TCP towards a peer whose path is known to be narrow.
struct NarrowPathTests {
    @Test("1.17: over a path of 1,280 bytes TCP is cut so that its messages fit, for as long as the path is known")
    func cutsFiner() throws {
        let rig = Rig()
        let session = try rig.sessionAsResponder()
        rig.device.mtu = 1420
        let packet = tcp(from: rig, payloadLength: 43 * 1_380)
        #expect(try train(of: packet, from: rig, at: 0).stride == 1_452)
        rig.device.limitMessages(to: rig.peer, until: rig.start + .seconds(60))
        let narrow = try train(of: packet, from: rig, at: 1)
        // With an IPv4 header of 20 bytes and a UDP header of 8.
        #expect(narrow.stride <= 1_280 - 28 && narrow.stride > 1_200)
        #expect(narrow.count == (43 * 1_380 + 1_175) / 1_176)
        #expect(try train(of: packet, from: rig, at: 61).stride == 1_452)
        withExtendedLifetime(session) {}
    }

    /// A TCP packet without options and with DF, made from a UDP packet of that length.
    private func tcp(from rig: Rig, payloadLength: Int) -> [UInt8] {
        var packet = InnerPacket.udp(
            from: rig.ownAddress, to: rig.remoteAddress, payload: [UInt8](repeating: 0, count: 12 + payloadLength))
        packet[6] = 0x40
        packet[9] = 6
        packet[32] = 0x50
        packet[33] = 0x10
        return packet
    }

    private func train(of packet: [UInt8], from rig: Rig, at time: UInt64) throws -> MessageTrain {
        var header = VirtioNetworkHeader(flags: .needsChecksum)
        header.segmentation = .tcpV4
        header.segmentSize = 1_380
        header.checksumStart = 20
        header.checksumOffset = 16
        var output = [UInt8](repeating: 0, count: 100_000)
        var span = output.mutableSpan
        var bytes = span.mutableOctets
        let outcome = rig.device.transmit(
            packet.span.octets, header: header, into: &bytes, at: rig.start + .seconds(time))
        guard case .send(let train, _) = outcome else {
            Issue.record("not sent: \(outcome)")
            return MessageTrain(offset: 0, length: 0)
        }
        return train
    }
}
