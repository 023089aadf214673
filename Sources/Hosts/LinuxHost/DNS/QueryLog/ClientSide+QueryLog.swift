internal import DNSProxy
internal import IPPacket
internal import WireGuard

extension ClientSide {
    /// Notes in the log how a query was answered that had to wait. Its client has not got the answer yet. For who holds the proxy.
    func note(_ report: AnswerReport) {
        var (address, isTunnelled): (IPAddress?, Bool) = (nil, false)
        if let query = StreamQuery(report.client) {
            address = streams.client(query.slot, query.generation)?.address
        } else if let client = shared.datagramClients.client(of: report.client) {
            (address, isTunnelled) = (client.client.address, client.origin == .tunnel)
        }
        shared.note(report, from: address, isTunnelled: isTunnelled, at: HostClock.now())
    }
}
