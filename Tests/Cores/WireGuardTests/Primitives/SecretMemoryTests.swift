import ByteAccess
import TestSupport
import Testing

@testable import WireGuard

@Suite struct SecretMemoryTests {
    /// A class with secrets, as the protocol's parts have them.
    private final class Keeper: Sendable {
        let secret: SecretMemory

        init(_ bytes: [UInt8]) { secret = SecretMemory(copying: bytes.octets) }

        func sum() -> Int {
            secret.withBytes { bytes in
                var sum = 0
                for offset in 0..<bytes.byteCount { sum += Int(bytes.uint8(at: offset)) }
                return sum
            }
        }
    }

    @Test func `new memory is all zero`() {
        let memory = SecretMemory(byteCount: 100)
        #expect(memory.byteCount == 100)
        #expect(memory.bytes.byteCount == 100)
        #expect(isAllZero(memory.bytes) == true)
    }

    @Test func `what is written is read back until it is wiped`() {
        var memory = SecretMemory(byteCount: 32)
        var bytes = memory.mutableBytes
        bytes.store(0xAB, at: 31)
        #expect(memory.bytes.uint8(at: 31) == 0xAB)
        memory.wipe()
        #expect(isAllZero(memory.bytes) == true)
    }

    @Test func `a class can keep a secret and another task read it`() async {
        let keeper = Keeper([1, 2, 3])
        let sum = await Task.detached { keeper.sum() }.value
        #expect(sum == 6)
    }

    @Test func `wiping a span zeroes it and nothing beside it`() {
        var bytes = [UInt8](repeating: 0xFF, count: 10)
        var span = bytes.mutableSpan
        var all = span.mutableOctets
        var middle = all._mutatingExtracting(2..<8)
        wipe(&middle)
        #expect(bytes == [0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF])
    }

    @Test func `comparison tells equal from different in every byte and in length`() {
        let bytes = [UInt8](0..<40)
        let same = Array(bytes)
        let shorter = Array(bytes.dropLast())
        #expect(constantTimeEqual(bytes.octets, same.octets) == true)
        #expect(constantTimeEqual(RawSpan(), RawSpan()) == true)
        #expect(constantTimeEqual(bytes.octets, shorter.octets) == false)
        for index in bytes.indices {
            var other = bytes
            other[index] ^= 0x80
            #expect(constantTimeEqual(bytes.octets, other.octets) == false)
        }
    }

    @Test func `one bit anywhere is not all zero`() {
        for index in 0..<32 {
            var bytes = [UInt8](repeating: 0, count: 32)
            #expect(isAllZero(bytes.octets) == true)
            bytes[index] = 0x10
            #expect(isAllZero(bytes.octets) == false)
        }
    }
}
