import IPPacket
import Provider
import SimulatedHost
import TestSupport

@testable import WireGuard

/// A device without a network and one connection of the configuration protocol to it.
final class ConfiguredDevice {
    var device = Device(cryptography: makePrimitives(), entropy: SeededGenerator(seed: 77))
    private var session = ConfigurationSession()
    var now = Instant(nanoseconds: 5_000_000_000)
    /// What the host was asked to do.
    var requests: [ConfigurationSession.Step] = []
    /// What the host's answer to the next request is: an errno, or nil for success.
    var failure: Int32?

    static func interfaceIndex(_ name: String) -> UInt32? { ["eth0": 2, "wlan0": 3][name] }
    static func interfaceName(_ index: UInt32) -> String? { [2: "eth0", 3: "wlan0"][index] }

    /// Feeds lines and returns the answers that came.
    @discardableResult
    func receive(_ text: String) -> [ConfigurationSession.Step] {
        var answers: [ConfigurationSession.Step] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            let step = session.receive(
                Array(line.utf8).octets, for: &device, at: now, interfaceIndex: Self.interfaceIndex)
            switch step {
            case .next: break
            case .reply, .list: answers.append(step)
            case .setListenPort(let port):
                requests.append(step)
                if let failure { answers.append(session.fail(failure)) } else { device.listenPort = port }
            case .setFirewallMark(let mark):
                requests.append(step)
                if let failure { answers.append(session.fail(failure)) } else { device.firewallMark = mark }
            }
        }
        return answers
    }

    func receiveOverlongLine() -> ConfigurationSession.Step { session.receiveOverlongLine() }

    /// The device's settings as a get operation shows them.
    func listing() -> String {
        var listing = ConfigurationListing()
        var output: [UInt8] = []
        while listing.appendNext(of: device, to: &output, interfaceName: Self.interfaceName) {}
        return String(decoding: output, as: UTF8.self)
    }

    /// The device's next datagram.
    func nextSent() -> MessageKind? {
        var buffer = [UInt8](repeating: 0, count: 2048)
        var span = buffer.mutableSpan
        var bytes = unsafe span.mutableBytes
        while let action = device.nextAction(
            into: &bytes, at: now, wallClock: WallClockTime(seconds: 9, nanoseconds: 0))
        {
            if case .send(let length, _) = action {
                return MessageKind(of: (0..<length).map { bytes.bytes[$0] })
            }
        }
        return nil
    }
}

extension RawSpan {
    fileprivate subscript(offset: Int) -> UInt8 { unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
}

// Keys as the protocol writes them.
let privateKey = "e84b5a6d2717c1003a13b431570353dbaca9146cf150c5f8575680feba52027a"
let keyA = "b85996fecc9c7f1fc6d2572a76eda11d59bcd20be8e543b15ce4bd85a8e75a33"
let keyB = "58402e695ba1772b1cc9309755f043251ea77fdcf10fbe63989ceb7e19321376"
let keyC = "662e14fd594556f522604703340351258903b64f35553763f19426ab2a515c58"
let presharedKey = "188515093e952f5f22e865cef3012e72f8b5f0b598ac0309d5dacce3b70fcf52"
let zeroKey = String(repeating: "0", count: 64)
