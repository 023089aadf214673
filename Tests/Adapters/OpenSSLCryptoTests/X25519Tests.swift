import ByteAccess
import OpenSSLCrypto
import TestSupport
import Testing
import WireGuard

/// RFC 7748.
@Suite struct X25519Tests {
    private let cryptography: OpenSSLCryptography

    init() throws { cryptography = try OpenSSLCryptography() }

    private func publicKey(of privateKey: [UInt8]) -> [UInt8] {
        [UInt8](count: 32) { cryptography.derivePublicKey(of: privateKey.octets, into: &$0) }
    }

    /// The shared secret, and whether it was called usable.
    private func secret(_ privateKey: [UInt8], _ publicKey: [UInt8]) -> ([UInt8], Bool) {
        var isUsable = false
        let secret = [UInt8](count: 32) {
            isUsable = cryptography.deriveSharedSecret(
                privateKey: privateKey.octets, publicKey: publicKey.octets, into: &$0)
        }
        return (secret, isUsable)
    }

    @Test(arguments: [
        (
            "A546E36BF0527C9D3B16154B82465EDD62144C0AC1FC5A18506A2244BA449AC4",
            "E6DB6867583030DB3594C1A424B15F7C726624EC26B3353B10A903A6D0AB1C4C",
            "C3DA55379DE9C6908E94EA4DF28D084F32ECCF03491C71F754B4075577A28552"
        ),
        (
            "4B66E9D4D1B4673C5AD22691957D6AF5C11B6421E0EA01D42CA4169E7918BA0D",
            "E5210F12786811D3F4B7959D0538AE2C31DBE7106FC03C3EFC4CD549C715A493",
            "95CBDE9476E8907D7AADE45CB4B873F88B595A68799FA152E6F8F7647AAC7957"
        ),
    ])
    func `the products of section 5.2 come out`(scalar: String, coordinate: String, product: String) {
        let (secret, isUsable) = secret(hex(scalar), hex(coordinate))
        #expect(secret == hex(product))
        #expect(isUsable)
    }

    @Test func `the iterations of section 5.2 come out after one and after a thousand rounds`() {
        var scalar = [UInt8](repeating: 0, count: 32)
        scalar[0] = 9
        var coordinate = scalar
        for round in 1...1000 {
            let (product, isUsable) = secret(scalar, coordinate)
            guard isUsable else {
                Issue.record("no product in round \(round)")
                return
            }
            (scalar, coordinate) = (product, scalar)
            if round == 1 {
                #expect(
                    scalar == hex("422C8E7A6227D7BCA1350B3E2BB7279F7897B87BB6854B783C60E80311AE3079"))
            }
        }
        #expect(scalar == hex("684CF59BA83309552800EF566F2F4D3C1C3887C49360E3875F2EB94D99532C51"))
    }

    @Test func `the key exchange of section 6.1 comes out on both sides`() {
        let alice = hex("77076D0A7318A57D3C16C17251B26645DF4C2F87EBC0992AB177FBA51DB92C2A")
        let bob = hex("5DAB087E624A8A4B79E17F8B83800EE66F3BB1292618B6FD1C2F8B27FF88E0EB")
        let alicePublic = hex("8520F0098930A754748B7DDCB43EF75A0DBF3A0D26381AF4EBA4A98EAA9B4E6A")
        let bobPublic = hex("DE9EDB7D7B7DC1B4D35B61C2ECE435373F8343C85B78674DADFC7E146F882B4F")
        let shared = hex("4A5D9D5BA4CE2DE1728E3BF480350F25E07E21C947D19E3376F09B3C1E161742")
        #expect(publicKey(of: alice) == alicePublic)
        #expect(publicKey(of: bob) == bobPublic)
        #expect(secret(alice, bobPublic) == (shared, true))
        #expect(secret(bob, alicePublic) == (shared, true))
    }

    @Test func `private keys are clamped`() {
        let key = [UInt8](0..<32)
        var clamped = key
        clamped[0] &= 0xF8
        clamped[31] = clamped[31] & 0x7F | 0x40
        var unclamped = clamped
        unclamped[0] |= 7
        unclamped[31] ^= 0xC0
        let other = publicKey(of: [UInt8](repeating: 0x55, count: 32))
        for variant in [clamped, unclamped] {
            #expect(publicKey(of: variant) == publicKey(of: key))
            #expect(secret(variant, other) == secret(key, other))
        }
    }

    /// The points of orders 1, 2, 4 and 8 on the curve and its twist, also written with a multiple of the prime added
    /// and with the top bit set, which RFC 7748 says to ignore.
    @Test(arguments: [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "E0EB7A7C3B41B8AE1656E3FAF19FC46ADA098DEB9C32B1FD866205165F49B800",
        "5F9C95BCA3508C24B1D0B1559C83EF5B04445CC4581C8E86D8224EDDD09F1157",
        "ECFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF7F",
        "EDFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF7F",
        "EEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF7F",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "E0EB7A7C3B41B8AE1656E3FAF19FC46ADA098DEB9C32B1FD866205165F49B880",
        "5F9C95BCA3508C24B1D0B1559C83EF5B04445CC4581C8E86D8224EDDD09F11D7",
        "ECFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
        "EDFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
        "EEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
    ])
    func `a public key of low order is refused and gives zeros`(publicKey: String) {
        let (secret, isUsable) = secret([UInt8](1...32), hex(publicKey))
        #expect(!isUsable)
        #expect(secret == [UInt8](repeating: 0, count: 32))
    }
}
