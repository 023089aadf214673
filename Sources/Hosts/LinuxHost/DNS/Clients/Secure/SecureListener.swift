internal import Provider

/// A socket that clients connect to for TLS.
final class SecureListener {
    /// What it is called in tokens. No other listener has the number.
    let number: Int
    /// Where it listens.
    let address: AddressAndPort
    /// The socket.
    let descriptor: FileDescriptor
    /// What is spoken with those who connect from now on.
    var service: SecureService

    /// Takes over a socket.
    init(number: Int, address: AddressAndPort, descriptor: consuming FileDescriptor, service: SecureService) {
        self.number = number
        self.address = address
        self.descriptor = descriptor
        self.service = service
    }
}

/// What became of clients by TLS, counted from the start.
struct SecureCounts: Equatable, Sendable {
    /// How many shook hands for DNS over TLS.
    var tls: UInt64 = 0
    /// How many shook hands for DNS over HTTPS.
    var https: UInt64 = 0
    /// How many of both went on with an earlier session.
    var resumed: UInt64 = 0
    /// How many are shaking hands now.
    var handshaking = 0
    /// How many did not get as far, for another reason than those below.
    var failedHandshakes: UInt64 = 0
    /// How many sent, or announced, more than a handshake takes.
    var overlongHandshakes: UInt64 = 0
    /// How many were closed because too many were shaking hands, and they had been at it for longest.
    var displacedHandshakes: UInt64 = 0
    /// How many requests by HTTPS were none, or for something else: answered with a status from 400 on.
    var refusedRequests: UInt64 = 0
    /// How many requests were refused because too much of their client waited.
    var overfullRequests: UInt64 = 0
}
