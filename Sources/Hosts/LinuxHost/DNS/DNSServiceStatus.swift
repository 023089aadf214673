internal import DNSProxy
internal import Provider

/// How the DNS proxy is doing on this machine.
struct DNSServiceStatus {
    /// What the core says.
    var proxy: DNSProxyStatus
    /// What the client side counted.
    var clients: ClientCounts
    /// What the server side knows of each server, in the order of the configuration.
    var servers: [ServerStatus]
    /// How many queries from the TUN device were lost because too many waited.
    var lostInTunnel: UInt64
}
