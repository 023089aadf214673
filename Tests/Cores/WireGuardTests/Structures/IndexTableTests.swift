import TestSupport
import Testing

@testable import WireGuard

@Suite("Index table")
struct IndexTableTests {
    private func peer(_ entry: IndexTable.Entry?) -> UInt32? { entry?.peer.rawValue }

    @Test(
        "It finds what a dictionary finds, after any insertions and removals", arguments: 1...10 as ClosedRange<UInt64>)
    func againstDictionary(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var table = IndexTable()
        var reference: [UInt32: UInt32] = [:]
        // Few low bits make long probe sequences that wrap round.
        let masks: [UInt32] = [0xf000_003f, 0xffff_ffff, 0x0000_00ff, 0xff00_003e]
        let mask = masks[Int(seed) % masks.count]
        for step in 0..<4000 {
            let index = UInt32.random(in: 0...UInt32.max, using: &generator) & mask
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                table.set(index, to: .handshake(PeerIndex(rawValue: UInt32(step))))
                reference[index] = UInt32(step)
            case 2:
                if let known = reference.keys.randomElement(using: &generator) {
                    table.remove(known)
                    reference[known] = nil
                }
            case 3:
                table.remove(index)
                reference[index] = nil
            default:
                #expect(peer(table[index]) == reference[index])
            }
            #expect(table.count == reference.count)
        }
        for (index, value) in reference { #expect(peer(table[index]) == value) }
    }

    @Test("An unused index is one that names nothing")
    func unusedIndex() {
        var table = IndexTable()
        var entropy: Entropy = SeededGenerator(seed: 5)
        for number in 0..<5000 as Range<UInt32> {
            let index = table.unusedIndex(entropy: &entropy)
            #expect(table[index] == nil)
            table.set(index, to: .handshake(PeerIndex(rawValue: number)))
        }
        #expect(table.count == 5000)
    }
}
