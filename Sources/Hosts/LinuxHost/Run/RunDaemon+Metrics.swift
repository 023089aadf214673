internal import OpenMetrics
internal import PacketTunnel
internal import Provider
internal import WireGuard

// Who reads metrics.
extension RunDaemon {
    /// Does what an event of the metrics' sockets asks for.
    mutating func serveMetrics(_ event: Event) {
        guard case .request(let request, let client) = metrics.handle(event, loop) else { return }
        var page = ""
        if request.path == MetricsPage.path { page = metricsPage().text }
        let response = request.response(pageAt: MetricsPage.path, contentType: OpenMetricsText.contentType) { page }
        metrics.answer(client, response, loop)
    }

    private mutating func metricsPage() -> MetricsPage {
        var page = MetricsPage(version: ProgramVersion.text, startedAt: startedAt, process: .now)
        page.dns = dns?.status()
        page.cacheLimit = configuration.dns?.cacheMaxBytes ?? 0
        let isConnected = provider.status == .connected
        page.tunnel = withDeviceIfAny { device in
            MetricsPage.Tunnel(
                isConnected: isConnected, peers: device.snapshots,
                drops: DropReason.allCases.map { ($0, device.drops[$0]) })
        }
        return page
    }
}
