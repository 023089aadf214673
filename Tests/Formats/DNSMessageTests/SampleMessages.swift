import DNSMessage
import TestSupport
import Testing

/// A message that is in order.
struct SampleMessage: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]

    var testDescription: String { name }
}

/// Messages of many shapes, made by hand.
enum SampleMessages {
    static let example = "07 6578616d706c65 03 636f6d 00"

    static let all: [SampleMessage] = [
        SampleMessage(name: "query", bytes: hex("abcd 0100 0001 0000 0000 0000 \(example) 0001 0001")),
        SampleMessage(
            name: "query with EDNS",
            bytes: hex(
                "abcd 0120 0001 0000 0000 0001 \(example) 001c 0001 00 0029 04d0 00008000 000c 000a 0008 0102030405060708"
            )),
        SampleMessage(
            name: "aliases and addresses",
            bytes: hex(
                """
                abcd 8180 0001 0003 0001 0002 \(example) 0001 0001
                c00c 0005 0001 00000064 0006 03 777777 c00c
                c029 0001 0001 0000012c 0004 c0000201
                c029 0001 0001 0000012c 0004 c0000202
                c00c 0002 0001 00000e10 0005 02 6e73 c00c
                c05b 001c 0001 00000e10 0010 20010db8000000000000000000000053
                00 0029 04d0 00000000 0000
                """)),
        SampleMessage(
            name: "no such name",
            bytes: hex(
                """
                abcd 8183 0001 0000 0001 0000 \(example) 0001 0001
                c014 0006 0001 00000384 001c 01 61 c014 01 62 c014 00000001 00000708 00000384 00093a80 00015180
                """)),
        SampleMessage(
            name: "mail and services",
            bytes: hex(
                """
                abcd 8180 0001 0004 0000 0000 \(example) 00ff 0001
                c00c 000f 0001 0000012c 0009 000a 04 6d61696c c00c
                c00c 0021 0001 0000012c 0013 0001 0002 01bb \(example)
                c00c 0010 0001 0000012c 000a 03 616263 05 6465666768
                c00c 0041 0001 0000012c 001e 0001 00 0001 0006 02 6832 02 6833 0004 0008 c0000201 c0000202 fde9 0001 7f
                """)),
        SampleMessage(
            name: "signatures",
            bytes: hex(
                """
                abcd 81a0 0001 0002 0001 0001 \(example) 0001 0001
                c00c 0001 0001 0000012c 0004 c0000201
                c00c 002e 0001 0000012c 0023 0001 08 02 0000012c 69000000 68000000 1234 \(example) 01020304
                c00c 002f 0001 0000012c 000a 01 61 c00c 0004 40000001
                00 0029 04d0 00008000 0000
                """)),
    ]

    /// One of the samples with a few changes: octets set, parts cut, doubled or swapped.
    static func mutated(using random: inout SeededGenerator) -> [UInt8] {
        var bytes = all[Int.random(in: 0..<all.count, using: &random)].bytes
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let offset = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes[offset] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: bytes[offset] = [0, 1, 12, 41, 63, 64, 192, 250, 255][Int.random(in: 0..<9, using: &random)]
            case 3: if bytes.count > 20 { bytes.remove(at: offset) }
            default: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: offset)
            }
        }
        return bytes
    }
}
