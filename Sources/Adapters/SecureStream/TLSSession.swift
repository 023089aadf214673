internal import CLibSSL

/// What is left of a connection to a server that was trusted, to begin another one with. It holds secrets, in OpenSSL's memory.
@safe
public struct TLSSession: ~Copyable {
    let session: OpaquePointer
    let policy: TrustPolicy
    let identity: ServerIdentity

    /// Takes over a reference.
    init(_ session: OpaquePointer, policy: TrustPolicy, identity: ServerIdentity) {
        unsafe self.session = unsafe session
        self.policy = policy
        self.identity = identity
    }

    deinit {
        // The reference is this value's own.
        unsafe SSL_SESSION_free(session)
    }
}
