import ByteAccess
import OpenSSLCrypto
import TestSupport
import Testing

@testable import WireGuard

@Suite struct XChaCha20Poly1305Tests {
    @Test func `HChaCha20 gives the subkey of draft-irtf-cfrg-xchacha section 2.2.1`() {
        let key = [UInt8](0..<32)
        let nonce = hex("000000090000004A0000000031415927")
        let subkey = [UInt8](count: 32) { HChaCha20.deriveKey(from: key.octets, nonce: nonce.octets, into: &$0) }
        #expect(
            subkey == hex("82413B4227B27BFED30E42508A877D73A0F9E4D58A74A853C12EC41326D3ECDC"))
    }

    // draft-irtf-cfrg-xchacha appendix A.3.1.
    private let key = [UInt8](0x80..<0xA0)
    private let nonce = [UInt8](0x40..<0x58)
    private let authenticatedData = hex("50515253C0C1C2C3C4C5C6C7")
    private let plaintext = Array(
        ("Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
            + "sunscreen would be it.").utf8)
    private let ciphertext = hex(
        """
        BD6D179D3E83D43B9576579493C0E939572A1700252BFACCBED2902C21396CBB
        731C7F1B0B4AA6440BF3A82F4EDA7E39AE64C6708C54C216CB96B72E1213B452
        2F8C9BA40DB5D945B11B69B982C1BB9E3F3FAC2BC369488F76B2383565D3FFF9
        21F9664C97637DA9768812F615C68B13B52E
        C0875924C1C7987947DEAFD8780ACF49
        """)

    @Test func `sealing gives the ciphertext of draft-irtf-cfrg-xchacha appendix A.3.1`() throws {
        let cryptography = try OpenSSLCryptography()
        let sealed = [UInt8](count: ciphertext.count) {
            XChaCha20Poly1305.seal(
                key: key.octets, nonce: nonce.octets, plaintext: plaintext.octets,
                authenticatedData: authenticatedData.octets, into: &$0, using: cryptography)
        }
        #expect(sealed == ciphertext)
    }

    @Test func `opening gives the plaintext back, and zeros when anything was changed`() throws {
        let cryptography = try OpenSSLCryptography()
        var isAuthentic = false
        func open(_ ciphertext: [UInt8], key: [UInt8], nonce: [UInt8], authenticatedData: [UInt8]) -> [UInt8] {
            [UInt8](count: ciphertext.count - 16) {
                isAuthentic = XChaCha20Poly1305.open(
                    key: key.octets, nonce: nonce.octets, ciphertext: ciphertext.octets,
                    authenticatedData: authenticatedData.octets, into: &$0, using: cryptography)
            }
        }
        func flipped(_ bytes: [UInt8], _ index: Int) -> [UInt8] {
            var bytes = bytes
            bytes[index] ^= 1
            return bytes
        }
        #expect(open(ciphertext, key: key, nonce: nonce, authenticatedData: authenticatedData) == plaintext)
        #expect(isAuthentic)
        let zeros = [UInt8](repeating: 0, count: plaintext.count)
        for changed in [0, 50, ciphertext.count - 1] {
            let bytes = flipped(ciphertext, changed)
            #expect(open(bytes, key: key, nonce: nonce, authenticatedData: authenticatedData) == zeros)
            #expect(!isAuthentic)
        }
        for changed in [0, 15, 16, 23] {
            let bytes = flipped(nonce, changed)
            #expect(open(ciphertext, key: key, nonce: bytes, authenticatedData: authenticatedData) == zeros)
            #expect(!isAuthentic)
        }
        #expect(open(ciphertext, key: flipped(key, 31), nonce: nonce, authenticatedData: authenticatedData) == zeros)
        #expect(!isAuthentic)
        #expect(open(ciphertext, key: key, nonce: nonce, authenticatedData: []) == zeros)
        #expect(!isAuthentic)
    }
}
