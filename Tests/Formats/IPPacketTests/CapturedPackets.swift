import TestSupport

/// Packets that two Linux 6 network stacks sent each other over a veth pair, with checksum offload switched off.
enum CapturedPackets {
    static let udpIPv4 = hex(
        "450000294529400040117197c0000201c00002029c4000090015402c68656c6c6f2c20736c75696365")
    /// The answer to `udpIPv4`: port unreachable.
    static let portUnreachableIPv4 = hex(
        """
        45c000458dcc000040016828c0000202c00002010303812700000000450000294529400040117197c0000201c00002029c4000090015402c
        68656c6c6f2c20736c75696365
        """)
    static let tcpSynIPv4 = hex(
        """
        4500003cfd1b40004006b99cc0000201c00002029c41005096eac00500000000a002faf0e1a90000020405b40402080aef86045600000000
        0103030a
        """)
    static let tcpSynAckIPv4 = hex(
        """
        4500003c000040004006b6b8c0000202c000020100509c4152b1ffe296eac006a012fe88bdd10000020405b40402080a606b6d2fef860456
        0103030a
        """)
    static let tcpDataIPv4 = hex(
        """
        45000037fd1d40004006b99fc0000201c00002029c41005096eac00652b1ffe38018003f4f9a00000101080aef860456606b6d2f474554
        """)
    /// The last fragment of a datagram of 1,544 bytes.
    static let lastFragmentIPv4 = hex(
        """
        45000054454a00b94011b092c0000201c0000202c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3
        e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff
        """)
    /// A datagram with a record route option that the sender filled in.
    static let udpWithOptionsIPv4 = hex(
        "4700002b454b400040115eaac0000201c0000202070708c0000201009c400009000f193a6f7074696f6e73")
    /// The answer to `udpWithOptionsIPv4`: port unreachable, with the option continued.
    static let portUnreachableWithOptionsIPv4 = hex(
        """
        47c0004f8eef000040015432c0000202c0000201070708c00002010003038121000000004700002b454b400040115eaac0000201c0000202
        070708c0000201009c400009000f193a6f7074696f6e73
        """)
    static let echoRequestIPv4 = hex("450000203e92400040017847c0000201c0000202080006fa1234000170696e67")
    static let echoReplyIPv4 = hex("450000208ef00000400167e9c0000202c000020100000efa1234000170696e67")

    static let udpIPv6 = hex(
        """
        600bc2640016114020010db800000000000000000000000120010db80000000000000000000000029c4000090016689868656c6c6f2c2073
        6c7569636521
        """)
    /// The answer to `udpIPv6`: port unreachable.
    static let portUnreachableIPv6 = hex(
        """
        60096efe00463a4020010db800000000000000000000000220010db800000000000000000000000101046f6700000000600bc26400161140
        20010db800000000000000000000000120010db80000000000000000000000029c4000090016689868656c6c6f2c20736c7569636521
        """)
    static let tcpSynIPv6 = hex(
        """
        600f122e0028064020010db800000000000000000000000120010db80000000000000000000000029c410050fe652fe700000000a002fd20
        47460000020405a00402080ad99103c5000000000103030a
        """)
    static let tcpDataIPv6 = hex(
        """
        600f122e0023064020010db800000000000000000000000120010db80000000000000000000000029c410050fe652fe838078a7780180040
        ca7500000101080ad99106eb91bcb5aa474554
        """)
    /// The last fragment of a datagram of 1,544 bytes.
    static let lastFragmentIPv6 = hex(
        """
        600bc26400682c4020010db800000000000000000000000120010db8000000000000000000000002110005a87a634e37a0a1a2a3a4a5a6a7
        a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf
        e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff
        """)
    /// A datagram behind a destination options header.
    static let udpWithOptionsIPv6 = hex(
        """
        600bc26400173c4020010db800000000000000000000000120010db800000000000000000000000211000104000000009c400009000f41c9
        6f7074696f6e73
        """)
    /// The answer to `udpWithOptionsIPv6`: port unreachable.
    static let portUnreachableWithOptionsIPv6 = hex(
        """
        60096efe00473a4020010db800000000000000000000000220010db80000000000000000000000010104325a00000000600bc26400173c40
        20010db800000000000000000000000120010db800000000000000000000000211000104000000009c400009000f41c96f7074696f6e73
        """)
    static let echoRequestIPv6 = hex(
        "600d54a5000d3a4020010db800000000000000000000000120010db80000000000000000000000028000fd3c1234000170696e6736")
    static let echoReplyIPv6 = hex(
        "6007be85000d3a4020010db800000000000000000000000220010db80000000000000000000000018100fc3c1234000170696e6736")
    /// A multicast listener report (RFC 3810) behind a hop-by-hop router alert.
    static let listenerReportIPv6 = hex(
        """
        6000000000380001fe8000000000000060a3c8fffed0edbdff0200000000000000000000000000163a000502000001008f006a2e00000002
        04000000ff0200000000000000000001ffd0edbd04000000ff0200000000000000000001ff000001
        """)
    static let neighborSolicitationIPv6 = hex(
        """
        6000000000203aff20010db8000000000000000000000001ff0200000000000000000001ff000002870004f60000000020010db800000000
        0000000000000002010162a3c8d0edbd
        """)

    /// The first fragments of datagrams of 1,536 bytes of payload that count up: their data is too long and too dull to spell.
    static let firstFragmentIPv4 = hex("450005dc454a200040118bc3c0000201c00002029c40000906085212") + countingUp(1472)
    static let firstFragmentIPv6 =
        hex(
            """
            600bc26405b02c4020010db800000000000000000000000120010db8000000000000000000000002110000017a634e37
            9c40000906087aa1
            """) + countingUp(1440)

    /// The datagrams that the fragments make, as the receiver put them together to quote them.
    static let longUDPIPv4 = hex("4500061c454a00004011ab83c0000201c00002029c40000906085212") + countingUp(1536)
    static let longUDPIPv6 =
        hex("600bc2640608114020010db800000000000000000000000120010db80000000000000000000000029c40000906087aa1")
        + countingUp(1536)
    /// The beginnings of the answers to them: both IP headers and the ICMP header, and how long the whole is.
    static let longPortUnreachableIPv4 = (start: hex("45c002408eee00004001650bc0000202c000020103037c0900000000"), 576)
    static let longPortUnreachableIPv6 = (
        start: hex("60096efe04d83a4020010db800000000000000000000000220010db80000000000000000000000010104223c00000000"),
        1280
    )

    /// All of them that are whole datagrams with a transport checksum.
    static let checksummed = [
        udpIPv4, portUnreachableIPv4, tcpSynIPv4, tcpSynAckIPv4, tcpDataIPv4, udpWithOptionsIPv4,
        portUnreachableWithOptionsIPv4, echoRequestIPv4, echoReplyIPv4, udpIPv6, portUnreachableIPv6, tcpSynIPv6,
        tcpDataIPv6, udpWithOptionsIPv6, portUnreachableWithOptionsIPv6, echoRequestIPv6, echoReplyIPv6,
        listenerReportIPv6, neighborSolicitationIPv6, longUDPIPv4, longUDPIPv6,
    ]
    /// All of them.
    static let all =
        checksummed + [lastFragmentIPv4, lastFragmentIPv6, firstFragmentIPv4, firstFragmentIPv6]

    private static func countingUp(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    }
}
