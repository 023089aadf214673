import ByteAccess
import CMeasurement
import OpenSSLCrypto
import Provider
import WireGuard

/// A device with many peers whose timers run.
private struct CrowdedDevice: ~Copyable {
    var device: Device<OpenSSLCryptography>
    var peers: [PeerIndex] = []
    var now = Instant(nanoseconds: 1_000_000_000_000)
    static var interval: Interval { .seconds(25) }

    init(peers count: Int) throws {
        device = try Device(cryptography: OpenSSLCryptography(), entropy: SystemRandomNumberGenerator())
        device.setLink(up: true, at: now)
        for number in 0..<count {
            var key = [UInt8](repeating: 0, count: 32)
            for byte in 0..<4 { key[byte] = UInt8(truncatingIfNeeded: number >> (8 * byte)) }
            guard let index = device.addPeer(PublicKey(key.span.octets)) else { preconditionFailure("no room") }
            _ = device.setPersistentKeepalive(Self.interval, of: index, at: now)
            peers.append(index)
        }
    }
}

/// Asks when something is due.
struct NextDeadline: ~Copyable, Benchmark {
    let operations = 4096
    private var crowd: CrowdedDevice

    init(peers count: Int) throws {
        crowd = try CrowdedDevice(peers: count)
    }

    mutating func run() {
        for _ in 0..<operations {
            guard let deadline = crowd.device.nextDeadline() else { preconditionFailure("no timer runs") }
            measurement_consume(deadline.nanoseconds)
        }
    }
}

/// Lets one peer after the other move its deadline, as traffic with each does, asking when something is due in between.
struct MovingDeadlines: ~Copyable, Benchmark {
    let operations = 4096
    private var crowd: CrowdedDevice
    private var turn = 0

    init(peers count: Int) throws {
        crowd = try CrowdedDevice(peers: count)
    }

    mutating func run() {
        for _ in 0..<operations {
            crowd.now = crowd.now + Interval(nanoseconds: 1000)
            _ = crowd.device.setPersistentKeepalive(CrowdedDevice.interval, of: crowd.peers[turn], at: crowd.now)
            turn = turn + 1 == crowd.peers.count ? 0 : turn + 1
            guard let deadline = crowd.device.nextDeadline() else { preconditionFailure("no timer runs") }
            measurement_consume(deadline.nanoseconds)
        }
    }
}
