import COpenSSL
import TestSupport

/// The primitives of the protocol straight from OpenSSL, written without a look at the module under test: what its messages
/// are compared with. Slow and plain on purpose.
enum Reference {
    static func hash(_ parts: [UInt8]...) -> [UInt8] {
        let data = parts.flatMap(\.self)
        var digest = [UInt8](repeating: 0, count: 32)
        var length = 0
        // The arrays are valid during the call, and the digest is as long as BLAKE2s-256's.
        let isDone = unsafe EVP_Q_digest(nil, "BLAKE2S-256", nil, data, data.count, &digest, &length)
        precondition(isDone == 1 && length == 32)
        return digest
    }

    static func hmac(_ key: [UInt8], _ data: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 32)
        var length = 0
        // The arrays are valid during the call, and the code's length is given.
        let result = unsafe EVP_Q_mac(
            nil, "HMAC", nil, "BLAKE2S-256", nil, key, key.count, data, data.count, &code, code.count, &length)
        precondition(unsafe result != nil && length == 32)
        return code
    }

    /// Keyed BLAKE2s with an output of 16 bytes.
    static func mac(_ key: [UInt8], _ data: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 16)
        var length = 0
        var size = 16
        unsafe "size".withCString { name in
            unsafe withUnsafeMutablePointer(to: &size) { size in
                // OpenSSL keeps the name and the pointer only in these parameters, which do not outlive the closures.
                let parameters = unsafe [OSSL_PARAM_construct_size_t(name, size), OSSL_PARAM_construct_end()]
                let result = unsafe EVP_Q_mac(
                    nil, "BLAKE2SMAC", nil, nil, parameters, key, key.count, data, data.count, &code, code.count,
                    &length)
                precondition(unsafe result != nil && length == 16)
            }
        }
        return code
    }

    /// KDFn of the paper: n outputs of HKDF.
    static func kdf(_ count: Int, _ key: [UInt8], _ input: [UInt8]) -> [[UInt8]] {
        let secret = hmac(key, input)
        var outputs: [[UInt8]] = []
        for number in 1...count { outputs.append(hmac(secret, (outputs.last ?? []) + [UInt8(number)])) }
        return outputs
    }

    static func publicKey(of privateKey: [UInt8]) -> [UInt8] {
        let key = unsafe EVP_PKEY_new_raw_private_key_ex(nil, "X25519", nil, privateKey, privateKey.count)
        defer { unsafe EVP_PKEY_free(key) }
        var bytes = [UInt8](repeating: 0, count: 32)
        var length = 32
        // The buffer is as long as an X25519 key.
        precondition(unsafe EVP_PKEY_get_raw_public_key(key, &bytes, &length) == 1)
        return bytes
    }

    /// X25519, or 32 zero bytes when OpenSSL refuses the public key for its low order.
    static func sharedSecret(_ privateKey: [UInt8], _ publicKey: [UInt8]) -> [UInt8] {
        let own = unsafe EVP_PKEY_new_raw_private_key_ex(nil, "X25519", nil, privateKey, privateKey.count)
        let other = unsafe EVP_PKEY_new_raw_public_key_ex(nil, "X25519", nil, publicKey, publicKey.count)
        let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, own, nil)
        defer {
            unsafe EVP_PKEY_CTX_free(context)
            unsafe EVP_PKEY_free(own)
            unsafe EVP_PKEY_free(other)
        }
        var secret = [UInt8](repeating: 0, count: 32)
        var length = 32
        // The secret is as long as X25519's.
        guard unsafe EVP_PKEY_derive_init(context) == 1, unsafe EVP_PKEY_derive_set_peer(context, other) == 1,
            unsafe EVP_PKEY_derive(context, &secret, &length) == 1
        else { return [UInt8](repeating: 0, count: 32) }
        return secret
    }

    /// ChaCha20-Poly1305 with a nonce of four zero bytes and a little-endian counter.
    static func seal(_ key: [UInt8], _ counter: UInt64, _ plaintext: [UInt8], _ associated: [UInt8]) -> [UInt8] {
        seal(key, nonce: [0, 0, 0, 0] + littleEndian(counter), plaintext, associated)
    }

    static func open(_ key: [UInt8], _ counter: UInt64, _ ciphertext: [UInt8], _ associated: [UInt8]) -> [UInt8]? {
        open(key, nonce: [0, 0, 0, 0] + littleEndian(counter), ciphertext, associated)
    }

    static func xSeal(_ key: [UInt8], nonce: [UInt8], _ plaintext: [UInt8], _ associated: [UInt8]) -> [UInt8] {
        seal(hChaCha20(key, Array(nonce[..<16])), nonce: [0, 0, 0, 0] + nonce[16...], plaintext, associated)
    }

    static func xOpen(_ key: [UInt8], nonce: [UInt8], _ ciphertext: [UInt8], _ associated: [UInt8]) -> [UInt8]? {
        open(hChaCha20(key, Array(nonce[..<16])), nonce: [0, 0, 0, 0] + nonce[16...], ciphertext, associated)
    }

    /// HChaCha20 out of OpenSSL's ChaCha20: a block of key stream is the permuted state plus the state before; taking the
    /// known words of the latter away leaves the first and the last row of the permuted state, which is the result.
    static func hChaCha20(_ key: [UInt8], _ nonce: [UInt8]) -> [UInt8] {
        let context = unsafe EVP_CIPHER_CTX_new()
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var block = [UInt8](repeating: 0, count: 64)
        var length: Int32 = 0
        let zeros = block
        // OpenSSL's 16-byte IV is the counter and the nonce: words 12 to 15 of the state. Output is as long as input.
        precondition(unsafe EVP_EncryptInit_ex(context, EVP_chacha20(), nil, key, nonce) == 1)
        precondition(unsafe EVP_EncryptUpdate(context, &block, &length, zeros, 64) == 1)
        let before = Array("expand 32-byte k".utf8) + key + nonce
        var result: [UInt8] = []
        for word in [0, 1, 2, 3, 12, 13, 14, 15] {
            let bytes = word * 4..<word * 4 + 4
            result += littleEndian(integer32(block[bytes]) &- integer32(before[bytes]))
        }
        return result
    }

    static func littleEndian<Integer: FixedWidthInteger>(_ value: Integer) -> [UInt8] {
        (0..<Integer.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    static func integer32(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    static func integer64(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func seal(
        _ key: [UInt8], nonce: [UInt8], _ plaintext: [UInt8], _ associated: [UInt8]
    ) -> [UInt8] {
        let context = unsafe EVP_CIPHER_CTX_new()
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: plaintext.count + 16)
        var tag = [UInt8](repeating: 0, count: 16)
        var length: Int32 = 0
        // The output has room for the text and the tag for 16 bytes, as OpenSSL writes.
        precondition(unsafe EVP_EncryptInit_ex(context, EVP_chacha20_poly1305(), nil, key, nonce) == 1)
        precondition(unsafe EVP_EncryptUpdate(context, nil, &length, associated, Int32(associated.count)) == 1)
        precondition(unsafe EVP_EncryptUpdate(context, &output, &length, plaintext, Int32(plaintext.count)) == 1)
        precondition(unsafe EVP_EncryptFinal_ex(context, &tag, &length) == 1)
        precondition(unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, &tag) == 1)
        output.replaceSubrange(plaintext.count..., with: tag)
        return output
    }

    private static func open(
        _ key: [UInt8], nonce: [UInt8], _ ciphertext: [UInt8], _ associated: [UInt8]
    ) -> [UInt8]? {
        guard ciphertext.count >= 16 else { return nil }
        let text = Array(ciphertext.dropLast(16))
        var tag = Array(ciphertext.suffix(16))
        let context = unsafe EVP_CIPHER_CTX_new()
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: text.count + 16)
        var length: Int32 = 0
        // The output has room for more than the text.
        precondition(unsafe EVP_DecryptInit_ex(context, EVP_chacha20_poly1305(), nil, key, nonce) == 1)
        precondition(unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, &tag) == 1)
        precondition(unsafe EVP_DecryptUpdate(context, nil, &length, associated, Int32(associated.count)) == 1)
        precondition(unsafe EVP_DecryptUpdate(context, &output, &length, text, Int32(text.count)) == 1)
        var rest = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_DecryptFinal_ex(context, &rest, &length) == 1 else { return nil }
        return Array(output[..<text.count])
    }
}
