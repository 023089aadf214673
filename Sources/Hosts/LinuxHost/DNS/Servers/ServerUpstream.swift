internal import DNSMessage
internal import DNSProxy
internal import EncryptedDNS
internal import IPPacket
internal import Provider
internal import SecureStream

/// An exchange that waits for a connection or for an address.
struct WaitingExchange {
    let exchange: Exchange
    /// The oldest connection that it may go by, when it needs a fresh one.
    var fresh: ConnectionID?
}

/// A server of the configuration: where it is, the connections to it, and what waits for one.
final class ServerUpstream {
    /// What the configuration says.
    let configuration: DNSUpstreamConfiguration
    /// What is spoken on connections.
    let streamProtocol: StreamProtocol
    /// Which connections there are.
    var connections: UpstreamConnections<IPAddress>
    /// The connections themselves, the oldest first.
    var sockets: [StreamSocket] = []
    /// Exchanges for which there is no connection yet, the oldest first.
    var waiting: [WaitingExchange] = []
    /// True when those that wait may have somewhere to go.
    var needsReview = false
    /// What the last connection left, to be used once.
    var session: TLSSession?

    /// Where the server is.
    var addresses: [IPAddress]
    /// The name to ask a resolver about; nil when the configuration has addresses.
    let bootstrapName: DomainName?
    /// Which of the addresses datagrams go to.
    var datagramAddress = 0
    /// Datagrams that wait for an address.
    var waitingDatagrams: [Exchange] = []
    /// When addresses are asked for anew before the next datagram; nil for never.
    var addressesExpire: Instant?
    /// When a resolver may be asked again that had no answer.
    var resolutionRetry: Instant?

    /// What is wrong with the server's certificate, as the last connection found.
    var trustProblem: CertificateProblem?
    /// Why the last connection that came to nothing did.
    var lastProblem: ServerProblem?
    /// How often no resolver had an address.
    var failedResolutionCount = 0

    /// The most exchanges that wait for a connection or an address.
    static let waitingLimit = 1024

    /// The upstream of a configuration.
    init(_ configuration: DNSUpstreamConfiguration) throws(ServerStartError) {
        self.configuration = configuration
        streamProtocol = try StreamProtocol(configuration)
        switch configuration.host {
        case .address(let address):
            addresses = [address]
            bootstrapName = nil
        case .name(let name):
            addresses = configuration.addresses
            // A name that the configuration took is one of DNS; another one is never resolved.
            bootstrapName = addresses.isEmpty ? try? DomainName(parsing: name) : nil
        }
        connections = UpstreamConnections(addresses: addresses)
    }

    /// What the configuration calls it.
    var name: String { configuration.name }

    /// The connection of this name.
    func socket(_ id: ConnectionID) -> StreamSocket? { sockets.first { $0.id == id } }

    /// What those are told that wait when no connection is to be had.
    var failure: ExchangeFailure {
        if addresses.isEmpty { return .noAddress }
        return lastProblem?.exchangeFailure ?? .unreachable
    }
}

/// Why a connection came to nothing.
enum ServerProblem: Equatable, Sendable {
    /// TCP was not to be had.
    case system(SystemCallError)
    /// TCP took too long.
    case connectTimedOut
    /// The connection ended.
    case connection(ConnectionError)

    /// What the core is told.
    var exchangeFailure: ExchangeFailure {
        switch self {
        case .system: .unreachable
        case .connectTimedOut: .timedOut
        case .connection(let error): error.exchangeFailure
        }
    }
}
