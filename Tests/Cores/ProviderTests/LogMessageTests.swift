import IPPacket
import Provider
import Testing

@Suite("Log lines")
struct LogMessageTests {
    private let address = IPAddress.v4(IPv4Address(192, 0, 2, 1))
    private let key = SipHashKey(1, 2)

    @Test("Private values do not print; numbers, states and reasons do")
    func redaction() {
        let message: LogMessage =
            "peer \(7) at \(private: address) of \(hashed: "host.example") is \(VPNStatus.connected): \(public: "fine")"
        #expect(message.text == "peer 7 at <private> of <private> is connected: fine")
    }

    @Test("One switch shows private values")
    func showPrivate() {
        let message: LogMessage = "\(private: address), \(hashed: "host.example")"
        #expect(message.text(with: LogPrivacy(showPrivate: true, hashKey: key)) == "192.0.2.1, host.example")
    }

    @Test("A hash is eight digits, equal for equal values and one key, and different otherwise")
    func hashes() throws {
        func line(_ value: String, _ key: SipHashKey) -> String {
            let message: LogMessage = "\(hashed: value)"
            return message.text(with: LogPrivacy(hashKey: key))
        }
        let first = line("host.example", key)
        #expect(first.wholeMatch(of: /<private [0-9a-f]{8}>/) != nil)
        #expect(line("host.example", key) == first)
        #expect(line("other.example", key) != first)
        #expect(line("host.example", SipHashKey(1, 3)) != first)
        // The low half of the hash of that text, with all its digits however many zeros lead.
        for number in 0..<2000 {
            let text = line("\(number)", key)
            let expected = UInt32(truncatingIfNeeded: key.hash("\(number)"))
            let digits = text.dropFirst("<private ".count).dropLast()
            #expect(digits.count == 8 && UInt32(digits, radix: 16) == expected)
        }
    }

    @Test("A value that is not to be told apart has no hash")
    func noHash() {
        let message: LogMessage = "\(private: address)"
        #expect(message.text(with: LogPrivacy(hashKey: key)) == "<private>")
    }

    @Test("Levels have names, and order by how much they say")
    func levels() {
        #expect(LogLevel(named: "silent") == .silent)
        #expect(LogLevel(named: "error") == .error)
        #expect(LogLevel(named: "info") == .info)
        #expect(LogLevel(named: "verbose") == .verbose)
        #expect(LogLevel(named: "debug") == .verbose)
        #expect(LogLevel(named: "Error") == nil)
        #expect(LogLevel.silent < .error && LogLevel.error < .info && LogLevel.info < .verbose)
    }
}
