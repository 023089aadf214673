internal import ByteAccess
internal import CLibSSL

/// Looks at a server's certificates after the handshake and before the first byte of the application.
struct CertificateCheck: ~Copyable {
    private let rule: TrustPolicy.Rule

    init(_ policy: TrustPolicy) {
        rule = policy.rule
    }

    /// What is wrong; nil when the server is trusted.
    func problem(of handle: borrowing StreamHandle) -> CertificateProblem? {
        // Certificates and chains belong to the stream, which is there for the length of the call.
        guard let leaf = unsafe SSL_get0_peer_certificate(handle.stream) else { return .missing }
        switch rule {
        case .authorities(_, let pins):
            let result = unsafe SSL_get_verify_result(handle.stream)
            guard result == X509_V_OK, let chain = unsafe SSL_get0_verified_chain(handle.stream) else {
                return Self.problem(Int32(truncatingIfNeeded: result))
            }
            let count = unsafe clibssl_certificate_count(chain)
            var isPinned = pins == nil
            for index in 0..<count {
                guard let certificate = unsafe clibssl_certificate(chain, index) else { continue }
                // The signature of the last one is its own: it is trusted for being among the authorities.
                guard unsafe Self.isStrong(certificate, checkingSignature: index < count - 1) else { return .weak }
                if let pins, let pin = unsafe Self.pin(of: certificate), pins.contains(pin) { isPinned = true }
            }
            return isPinned ? nil : .pinMismatch
        case .pinsOnly(let pins):
            return unsafe problem(ofPinned: leaf, handle, pins)
        }
    }

    /// Goes from the leaf to its issuers among the certificates that were sent, as long as signatures fit, to a key that is pinned. What
    /// was sent along without having signed anything does not count.
    private func problem(
        ofPinned leaf: OpaquePointer, _ handle: borrowing StreamHandle, _ pins: PublicKeyPins
    ) -> CertificateProblem? {
        let sent = unsafe SSL_get_peer_cert_chain(handle.stream)
        let count = unsafe clibssl_certificate_count(sent)
        var certificate = unsafe leaf
        for _ in 0..<Self.maximumDepth {
            guard unsafe Self.isStrong(certificate, checkingSignature: false) else { return .weak }
            if let pin = unsafe Self.pin(of: certificate), pins.contains(pin) { return nil }
            var issuer: OpaquePointer?
            for index in 0..<max(0, count) {
                guard let candidate = unsafe clibssl_certificate(sent, index), unsafe candidate != certificate,
                    unsafe X509_check_issued(candidate, certificate) == X509_V_OK,
                    unsafe X509_verify(certificate, X509_get0_pubkey(candidate)) == 1
                else { continue }
                unsafe issuer = unsafe candidate
                break
            }
            ERR_clear_error()
            guard let issuer = unsafe issuer else { return .pinMismatch }
            guard unsafe Self.isStrong(certificate, checkingSignature: true) else { return .weak }
            unsafe certificate = unsafe issuer
        }
        return .pinMismatch
    }

    /// The most certificates from a leaf up.
    private static var maximumDepth: Int { 8 }

    /// The hash of the certificate's public key with its algorithm.
    private static func pin(of certificate: OpaquePointer) -> PublicKeyPin? {
        var encoded: UnsafeMutablePointer<UInt8>?
        // OpenSSL allocates the encoding, `length` bytes, and it is freed below.
        let length = unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded)
        defer { unsafe clibssl_free(encoded) }
        guard length > 0 else {
            ERR_clear_error()
            return nil
        }
        var digest = InlineArray<32, UInt8>(repeating: 0)
        var span = digest.mutableSpan
        var octets = span.mutableOctets
        // SHA-256 writes 32 bytes.
        let result = unsafe octets.withUnsafeMutableBytes { output in
            unsafe EVP_Digest(
                encoded, Int(length), output.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, EVP_sha256(), nil)
        }
        guard result == 1 else {
            ERR_clear_error()
            return nil
        }
        return PublicKeyPin(hash: digest.span.octets)
    }

    /// True for keys of RSA from 2048 bits and of elliptic curves from 256 bits on, and signatures with a hash of SHA-256 or better.
    private static func isStrong(_ certificate: OpaquePointer, checkingSignature: Bool) -> Bool {
        guard let key = unsafe X509_get0_pubkey(certificate) else {
            ERR_clear_error()
            return false
        }
        let bits = unsafe EVP_PKEY_get_bits(key)
        let isStrongKey =
            switch unsafe EVP_PKEY_get_base_id(key) {
            case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS: bits >= 2048
            case EVP_PKEY_EC: bits >= 256
            case EVP_PKEY_ED25519, EVP_PKEY_ED448: true
            default: false
            }
        guard isStrongKey, checkingSignature else { return isStrongKey }
        // Half the length of the hash: 128 for SHA-256.
        var securityBits: Int32 = 0
        guard unsafe X509_get_signature_info(certificate, nil, nil, &securityBits, nil) == 1 else {
            ERR_clear_error()
            return false
        }
        return securityBits >= 128
    }

    /// The problem that a result of OpenSSL's verification stands for.
    static func problem(_ result: Int32) -> CertificateProblem {
        switch result {
        case X509_V_ERR_CERT_HAS_EXPIRED: .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: .selfSigned
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            .unknownAuthority
        case X509_V_ERR_HOSTNAME_MISMATCH: .wrongName
        case X509_V_ERR_IP_ADDRESS_MISMATCH: .wrongAddress
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK: .weak
        case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_INVALID_CA: .wrongPurpose
        default: .other(result)
        }
    }
}
