import PacketTunnel
import Testing

struct SpellingTests {
    @Test(
        "What is close to a known word is found",
        arguments: [
            ("adress", "Address"), ("mut", "mtu"), ("MTU", "mtu"), ("upstream", "upstreams"),
            ("presistentkeepalive", "PersistentKeepalive"),
            ("addresses", "Address"), ("xyz", nil), ("", nil), ("m", nil), ("mtuuu", nil),
            (String(repeating: "a", count: 1000), nil),
        ] as [(String, String?)]) func nearest(_ word: String, _ known: String?)
    {
        #expect(Spelling.nearest(to: word, among: ["Address", "mtu", "upstreams", "PersistentKeepalive"]) == known)
    }

    @Test(
        "Names of hosts are checked",
        arguments: [
            ("example.com", true), ("a", true), ("example.com.", true), ("_dns.x-y.example", true), ("1.example", true),
            (String(repeating: "a", count: 63), true), (String(repeating: "a", count: 64), false),
            (String(repeating: "abc.", count: 63) + "a", true), (String(repeating: "abc.", count: 63) + "abc", false),
            ("", false), (".", false), ("a..b", false), ("-a", false), ("a-", false), ("1.2.3.4", false), ("1", false),
            ("a b", false), ("\u{E9}", false), ("a:1", false),
        ]) func names(_ name: String, _ isValid: Bool)
    {
        #expect(HostName.isValid(name) == isValid)
    }
}
