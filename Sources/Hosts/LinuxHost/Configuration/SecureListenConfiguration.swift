/// `dns.secureListen`: where questions are taken by TLS and HTTPS.
public struct SecureListenConfiguration: Equatable, Sendable {
    /// Where by TLS (RFC 7858).
    public var tls: [AddressAndPort] = []
    /// Where by HTTPS (RFC 8484).
    public var https: [AddressAndPort] = []
    /// Where HTTPS clients find it: a path that begins with a slash.
    public var path = "/dns-query"
    /// The file with the certificate that clients are shown, and those between it and an authority, in PEM form.
    public var certificateFile = ""
    /// The file with its private key, in PEM form.
    public var keyFile = ""
    /// True when the key is one of systemd's credentials, which its group may read.
    public var isKeyCredential = false
    /// How many clients may shake hands at one time.
    public var maximumHandshakes = 64
    /// How many of them may be from one IPv4 address, or one /64 of IPv6, that is not the machine's own.
    public var maximumHandshakesPerClient = 16
}
