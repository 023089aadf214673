import ByteAccess
import OpenSSLCrypto
import TestSupport
import Testing
import WireGuard

/// RFC 8439.
@Suite struct ChaCha20Poly1305Tests {
    private let cryptography: OpenSSLCryptography

    init() throws { cryptography = try OpenSSLCryptography() }

    private func seal(_ key: [UInt8], _ nonce: [UInt8], _ plaintext: [UInt8], _ authenticatedData: [UInt8]) -> [UInt8] {
        [UInt8](count: plaintext.count + 16) {
            cryptography.seal(
                key: key.octets, nonce: nonce.octets, plaintext: plaintext.octets,
                authenticatedData: authenticatedData.octets, into: &$0)
        }
    }

    /// The plaintext, and whether it was called authentic.
    private func open(
        _ key: [UInt8], _ nonce: [UInt8], _ ciphertext: [UInt8], _ authenticatedData: [UInt8]
    ) -> ([UInt8], Bool) {
        var isAuthentic = false
        let plaintext = [UInt8](count: ciphertext.count - 16) {
            isAuthentic = cryptography.open(
                key: key.octets, nonce: nonce.octets, ciphertext: ciphertext.octets,
                authenticatedData: authenticatedData.octets, into: &$0)
        }
        return (plaintext, isAuthentic)
    }

    @Test func `section 2.8.2 comes out, both ways`() {
        let key = [UInt8](0x80..<0xA0)
        let nonce = hex("070000004041424344454647")
        let authenticatedData = hex("50515253C0C1C2C3C4C5C6C7")
        let plaintext = Array(
            ("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
                + "sunscreen would be it.").utf8)
        let ciphertext = hex(
            """
            D31A8D34648E60DB7B86AFBC53EF7EC2A4ADED51296E08FEA9E2B5A736EE62D6
            3DBEA45E8CA9671282FAFB69DA92728B1A71DE0A9E060B2905D6A5B67ECD3B36
            92DDBD7F2D778B8C9803AEE328091B58FAB324E4FAD675945585808B4831D7BC
            3FF4DEF08E4B7A9DE576D26586CEC64B6116
            1AE10B594F09E26A7E902ECBD0600691
            """)
        #expect(seal(key, nonce, plaintext, authenticatedData) == ciphertext)
        #expect(open(key, nonce, ciphertext, authenticatedData) == (plaintext, true))
    }

    @Test func `appendix A.5 opens`() {
        let ciphertext = hex(
            """
            64A0861575861AF460F062C79BE643BD5E805CFD345CF389F108670AC76C8CB2
            4C6CFC18755D43EEA09EE94E382D26B0BDB7B73C321B0100D4F03B7F355894CF
            332F830E710B97CE98C8A84ABD0B948114AD176E008D33BD60F982B1FF37C855
            9797A06EF4F0EF61C186324E2B3506383606907B6A7C02B0F9F6157B53C867E4
            B9166C767B804D46A59B5216CDE7A4E99040C5A40433225EE282A1B0A06C523E
            AF4534D7F83FA1155B0047718CBC546A0D072B04B3564EEA1B422273F548271A
            0BB2316053FA76991955EBD63159434ECEBB4E466DAE5A1073A6727627097A10
            49E617D91D361094FA68F0FF77987130305BEABA2EDA04DF997B714D6C6F2C29
            A6AD5CB4022B02709B
            EEAD9D67890CBB22392336FEA1851F38
            """)
        let (plaintext, isAuthentic) = open(
            hex("1C9240A5EB55D38AF333888604F6B5F0473917C1402B80099DCA5CBC207075C0"),
            hex("000000000102030405060708"), ciphertext,
            hex("F33388860000000000004E91"))
        #expect(isAuthentic)
        let text = String(decoding: plaintext, as: UTF8.self)
        #expect(text.hasPrefix("Internet-Drafts are draft documents valid for a maximum of six months"))
        #expect(text.hasSuffix("other than as /\u{201C}work in progress./\u{201D}"))
        #expect(plaintext.count == 265)
    }

    @Test func `random messages are sealed as by OpenSSL in one go, and open again`() {
        var generator = SeededGenerator(seed: 8439)
        for count in Array(0...130) + [1420, 1440, 9000, 65_536] {
            let (key, nonce, plaintext) = (generator.bytes(32), generator.bytes(12), generator.bytes(count))
            let authenticatedData = generator.bytes(Int.random(in: 0...40, using: &generator))
            let sealed = seal(key, nonce, plaintext, authenticatedData)
            #expect(
                sealed
                    == Reference.seal(
                        key: key, nonce: nonce, plaintext: plaintext, authenticatedData: authenticatedData))
            #expect(open(key, nonce, sealed, authenticatedData) == (plaintext, true))
        }
    }

    @Test func `a change anywhere is refused and gives zeros`() {
        var generator = SeededGenerator(seed: 2)
        let (key, nonce, plaintext) = (generator.bytes(32), generator.bytes(12), generator.bytes(40))
        let authenticatedData = generator.bytes(8)
        let sealed = seal(key, nonce, plaintext, authenticatedData)
        let refused = ([UInt8](repeating: 0, count: plaintext.count), false)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 4
            #expect(open(key, nonce, changed, authenticatedData) == refused, "byte \(index)")
        }
        for index in authenticatedData.indices {
            var changed = authenticatedData
            changed[index] ^= 4
            #expect(open(key, nonce, sealed, changed) == refused)
        }
        #expect(open(generator.bytes(32), nonce, sealed, authenticatedData) == refused)
        #expect(open(key, generator.bytes(12), sealed, authenticatedData) == refused)
        #expect(open(key, nonce, Array(sealed.dropLast()), authenticatedData).1 == false)
        #expect(open(key, nonce, sealed, authenticatedData) == (plaintext, true))
    }
}
