import ByteAccess
import TestSupport
import Testing

@testable import LinuxHost

@Suite struct ByteBufferTests {
    @Test(arguments: 0..<8)
    func behavesAsAQueueOfBytes(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var buffer = ByteBuffer(capacity: 37)
        var model: [UInt8] = []
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<3, using: &generator) {
            case 0:
                let bytes = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
                let fits = model.count + bytes.count <= 37
                #expect(buffer.append(bytes.span.octets) == fits)
                if fits { model += bytes }
            case 1 where model.count < 37:
                let count = Int.random(in: 0...(37 - model.count), using: &generator)
                let byte = UInt8.random(in: 0...255, using: &generator)
                let written = unsafe buffer.append { free in
                    for index in 0..<count { unsafe free[index] = byte }
                    return free.count >= count ? count : -1
                }
                #expect(written == count)
                model += [UInt8](repeating: byte, count: count)
            default:
                let count = Int.random(in: 0...model.count, using: &generator)
                buffer.removeFirst(count)
                model.removeFirst(count)
            }
            #expect(buffer.count == model.count)
            #expect(buffer.room == 37 - model.count)
            #expect(Array(buffer.bytes) == model)
        }
    }

    @Test func offersAllOfItsRoomAndWipesWhatWasRemoved() {
        var buffer = ByteBuffer(capacity: 8)
        #expect(buffer.append(([1, 2, 3, 4, 5, 6] as [UInt8]).span.octets) == true)
        buffer.removeFirst(4)
        // Behind the two bytes that are left everything is room, and nothing of the others is in it.
        var room: [UInt8] = []
        let written = unsafe buffer.append { free in
            room = unsafe Array(free)
            return 0
        }
        #expect(written == 0)
        #expect(Array(buffer.bytes) == [5, 6])
        #expect(room == [0, 0, 0, 0, 0, 0])
    }
}
