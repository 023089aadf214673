import FuzzSupport
import IPPacket
import OpenSSLCrypto
import Provider
import WireGuard

/// The input is what comes in on two connections of the configuration protocol: lines that begin with a tab are the second
/// one's. Then the device is listed, and what it lists must make an equal device.
@c(LLVMFuzzerTestOneInput)
public func fuzzUAPI(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        var first = Configured()
        first.receive([UInt8](copying: bytes))
        let listing = first.listing()
        var second = Configured()
        let isStatistic = ["last_handshake_time", "tx_bytes", "rx_bytes"]
        let lines = listing.split(separator: "\n").filter { line in !isStatistic.contains { line.hasPrefix($0) } }
        second.receive(Array(("set=1\n" + lines.map { $0 + "\n" }.joined() + "\n").utf8))
        require(second.refusals == 0, "what is listed is taken")
        require(second.listing() == listing, "an equal device lists the same")
        first.live()
    }
}

private struct FixedEntropy: RandomNumberGenerator, Sendable {
    private var state: UInt64 = 1

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ state >> 29
    }
}

/// A device and two connections to it.
private struct Configured: ~Copyable {
    private var device: Device<OpenSSLCryptography>
    private var first = ConfigurationSession()
    private var second = ConfigurationSession()
    private let now = Instant(nanoseconds: 1_000_000_000)
    /// How many operations were refused.
    private(set) var refusals = 0

    init() {
        do {
            device = Device(cryptography: try OpenSSLCryptography(), entropy: FixedEntropy())
        } catch {
            fatalError("OpenSSL lacks an algorithm: \(error)")
        }
    }

    mutating func receive(_ text: [UInt8]) {
        for line in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            if line.first == UInt8(ascii: "\t") {
                Self.handle(Array(line.dropFirst()), &second, &device, now, &refusals)
            } else {
                Self.handle(Array(line), &first, &device, now, &refusals)
            }
        }
    }

    private static func handle(
        _ line: [UInt8], _ connection: inout ConfigurationSession, _ device: inout Device<OpenSSLCryptography>,
        _ now: Instant, _ refusals: inout Int
    ) {
        let step =
            line.count > 300
            ? connection.receiveOverlongLine()
            : line.read { line in
                connection.receive(line, for: &device, at: now) { $0 == "eth0" ? 2 : nil }
            }
        switch step {
        case .next, .list(nil), .reply(nil): break
        case .setListenPort(let port):
            if port == 99 { _ = connection.fail(98) } else { device.listenPort = port }
        case .setFirewallMark(let mark): device.firewallMark = mark
        case .reply, .list: refusals += 1
        }
    }

    func listing() -> String {
        var listing = ConfigurationListing()
        var output: [UInt8] = []
        while listing.appendNext(of: device, to: &output, interfaceName: { $0 == 2 ? "eth0" : nil }) {}
        return String(decoding: output, as: UTF8.self)
    }

    /// Lets the device do what its settings call for.
    mutating func live() {
        device.setLink(up: true, at: now)
        var output = [UInt8](repeating: 0, count: 2048)
        for seconds in [1, 30, 100, 70_000] as [UInt64] {
            let time = now + .seconds(seconds)
            let wallClock = WallClockTime(seconds: seconds, nanoseconds: 0)
            output.edit { output in
                while device.nextAction(into: &output, at: time, wallClock: wallClock) != nil {}
            }
            let deadline = device.nextDeadline()
            require(deadline.map { $0 > time } ?? true, "no deadline survives being polled")
        }
    }
}
