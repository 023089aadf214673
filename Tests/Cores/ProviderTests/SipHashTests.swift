import Provider
import Testing

@Suite("SipHash-2-4")
struct SipHashTests {
    /// The key of the paper's appendix A: the bytes 00 to 0f.
    private let key = SipHashKey(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)

    @Test("The paper's example, appendix A: fifteen bytes 00 to 0e")
    func paper() {
        #expect(key.hash(0...14 as ClosedRange<UInt8>) == 0xa129_ca61_49be_45e5)
    }

    /// The first of the reference implementation's vectors: the input of number n is the bytes 00 to n - 1.
    @Test("The vectors of the reference implementation, around a word's length")
    func vectors() {
        let expected: [UInt64] = [
            0x726f_db47_dd0e_0e31, 0x74f8_39c5_93dc_67fd, 0x0d6c_8009_d9a9_4f5a, 0x8567_6696_d7fb_7e2d,
            0xcf27_94e0_2771_87b7, 0x1876_5564_cd99_a68d, 0xcbc9_466e_58fe_e3ce, 0xab02_00f5_8b01_d137,
            0x93f5_f579_9a93_2462,
        ]
        for (length, hash) in expected.enumerated() {
            #expect(key.hash((0..<UInt8(length))) == hash, "\(length) bytes")
        }
    }
}
