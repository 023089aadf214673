import TestSupport
import Testing

/// The reference is held against published vectors, so that an error in it cannot hide one in the module.
@Suite("Reference")
struct ReferenceTests {
    @Test("BLAKE2s gives the result of RFC 7693, appendix B")
    func hash() {
        #expect(
            Reference.hash(Array("abc".utf8))
                == hex("508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"))
    }

    @Test("HChaCha20 gives the result of draft-irtf-cfrg-xchacha, section 2.2.1")
    func hChaCha20() {
        #expect(
            Reference.hChaCha20(Array(0..<32), hex("000000090000004a0000000031415927"))
                == hex("82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"))
    }

    @Test("XChaCha20-Poly1305 gives the result of draft-irtf-cfrg-xchacha, appendix A.3.1")
    func xChaCha20Poly1305() {
        let text =
            "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
        let key = (0x80...0x9f).map { UInt8($0) }
        let nonce = (0x40...0x57).map { UInt8($0) }
        let associated = hex("50515253c0c1c2c3c4c5c6c7")
        let sealed = Reference.xSeal(key, nonce: nonce, Array(text.utf8), associated)
        #expect(Array(sealed.prefix(16)) == hex("bd6d179d3e83d43b9576579493c0e939"))
        #expect(Array(sealed.suffix(16)) == hex("c0875924c1c7987947deafd8780acf49"))
        #expect(Reference.xOpen(key, nonce: nonce, sealed, associated) == Array(text.utf8))
    }
}
