internal import IPPacket
internal import Provider
public import WireGuard

extension EndpointName {
    /// The endpoint that the name spells as an address and a port; nil when it has to be looked up. An address with a scope has
    /// to, because only the host knows the number of an interface.
    public var numericEndpoint: Endpoint? {
        guard let address = try? IPAddress(parsing: host) else { return nil }
        return Endpoint(address: address, port: port)
    }
}

extension NetworkPath {
    /// Which of several endpoints to use over this path: the first of a family that it supports. Where it supports none of them,
    /// the first: it may be reached by another address yet.
    func preferred(of endpoints: [Endpoint]) -> Endpoint? {
        endpoints.first { supports($0.address.version) } ?? endpoints.first
    }
}
