internal import Glibc
internal import IPPacket
internal import PacketTunnel
internal import Provider
internal import WireGuard

/// The whole daemon: `sluice run`. It gives a packet tunnel provider what the provider asks for.
///
/// ```
///  configuration, signals ─▶ ┌──────────────┐ events  ┌──────────────────┐
///  names looked up ────────▶ │   the loop   │ ──────▶ │ packet tunnel    │
///  path to the network ────▶ │              │ ◀────── │ provider (core)  │
///  messages of programs ───▶ └──────────────┘ actions └──────────────────┘
///                                │ interface: packets, sockets, WireGuard device     │ privileged side: addresses, routes, …
/// ```
public struct RunDaemon: ~Copyable {
    /// What the events of the loop are about besides the interface.
    enum Token {
        static let signals = TunnelInterface.Token.firstFree
        static let controlListener = signals + 1
        static let controlFile = signals + 2
        static let messageListener = signals + 3
        static let resolution = signals + 4
        static let path = signals + 5
        static let commands = signals + 6
        static let queryNews = signals + 7
        static let controlClients: Range<UInt64> = 1 << 32..<2 << 32
        static let messageClients: Range<UInt64> = 2 << 32..<4 << 32
        static let metrics: Range<UInt64> = 4 << 32..<8 << 32
    }

    let file: String
    /// The name of the interface; nil for sockets only.
    let name: InterfaceName?
    let log: Log
    var configuration: DaemonConfiguration
    var loop: EventLoop
    let signals: SignalDescriptor
    /// Nil once it was closed, and for sockets only.
    var interface: TunnelInterface?
    /// The way to the privileged side for sockets only; an interface has one of its own.
    var channel: InProcessPrivilegedChannel?
    /// Where `wg` asks; nil without an interface.
    var control: ControlServer?
    /// The DNS proxy; nil when the configuration wants none.
    var dns: DNSService?
    /// Where the DNS proxy gets what comes out of the TUN device.
    let queries: QueryInbox
    var messages: AppMessageServer
    /// The programs that wait for the next query.
    var watchers: QueryWatchers
    /// Where what is counted is read.
    var metrics: MetricsServer
    let startedAt = HostClock.wallClock()
    let resolution: NameResolution
    var observer: PathObserver
    var commands = ShellCommands(token: Token.commands)
    var sequence = RunSequence()
    var provider: PacketTunnelProvider
    /// What the provider is to be told as soon as it has told everything itself.
    var pending: [PacketTunnelProvider.Event] = []
    /// The settings that are in force, and how they were put into force.
    var applied: AppliedSettings?
    var appliedManner: SettingsManner?
    /// Who keeps the machine's resolver while it is pointed here.
    var resolverKeeper: ResolverKeeper?
    /// Addresses that wait for their equivalent in a network that has only IPv6, by the look-up for it.
    var remaps: [UInt64: IPAddress] = [:]
    var isDevicePaused = false
    var sleepDetector = SleepDetector()
    var reportedLoss = false
    var nextRequest: UInt64 = 0
    /// The configurations that are to be taken over, each with the request that it is in; the provider takes one at a time, the
    /// first of them first.
    var candidates: [(id: PacketTunnelProvider.RequestID, configuration: DaemonConfiguration)] = []
    /// True once everything was up: what the device has before is not what the file says.
    var wasUp = false
    var exitStatus: Int32?
}
