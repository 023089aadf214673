import COpenSSL

/// OpenSSL's own functions, used in the plainest way, to compare with.
enum Reference {
    /// ChaCha20-Poly1305 in one go: the ciphertext and the tag.
    static func seal(key: [UInt8], nonce: [UInt8], plaintext: [UInt8], authenticatedData: [UInt8] = []) -> [UInt8] {
        let context = unsafe EVP_CIPHER_CTX_new()
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: plaintext.count)
        var tag = [UInt8](repeating: 0, count: 16)
        var length: Int32 = 0
        // Every length is that of the array it goes with.
        let sealed =
            unsafe EVP_EncryptInit_ex(context, EVP_chacha20_poly1305(), nil, key, nonce) == 1
            && EVP_EncryptUpdate(context, nil, &length, authenticatedData, Int32(authenticatedData.count)) == 1
            && EVP_EncryptUpdate(context, &output, &length, plaintext, Int32(plaintext.count)) == 1
            && EVP_EncryptFinal_ex(context, nil, &length) == 1
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, &tag) == 1
        precondition(sealed)
        return output + tag
    }

    /// BLAKE2s with 32 bytes of output.
    static func blake2s(_ input: [UInt8]) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: 32)
        let hashed = unsafe EVP_Digest(input, input.count, &output, nil, EVP_blake2s256(), nil) == 1
        precondition(hashed)
        return output
    }

    /// BLAKE2s keyed with 1 to 32 bytes.
    static func keyedBLAKE2s(key: [UInt8], _ input: [UInt8], count: Int) -> [UInt8] {
        let name: StaticString = "size"
        var size = count
        return unsafe withUnsafeMutablePointer(to: &size) { size in
            // OpenSSL keeps the pointers to the name, which is a constant, and to the size only during the call below.
            let name = unsafe UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
            return unsafe mac(
                "BLAKE2SMAC", nil, [OSSL_PARAM_construct_size_t(name, size), OSSL_PARAM_construct_end()], key, input,
                count)
        }
    }

    /// HMAC over BLAKE2s.
    static func hmac(key: [UInt8], _ input: [UInt8]) -> [UInt8] {
        unsafe mac("HMAC", "BLAKE2S-256", [OSSL_PARAM_construct_end()], key, input, 32)
    }

    private static func mac(
        _ name: String, _ digest: String?, _ parameters: [OSSL_PARAM], _ key: [UInt8], _ input: [UInt8], _ count: Int
    ) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: count)
        var length = 0
        // Every length is that of the array it goes with.
        let result = unsafe EVP_Q_mac(
            nil, name, nil, digest, parameters, key, key.count, input, input.count, &output, count, &length)
        precondition(unsafe result != nil && length == count)
        return output
    }
}
