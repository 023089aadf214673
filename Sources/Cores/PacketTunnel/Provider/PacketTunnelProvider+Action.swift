public import IPPacket
public import Provider
public import WireGuard

extension PacketTunnelProvider {
    /// What the UDP sockets are opened with.
    public struct SocketOptions: Hashable, Sendable {
        /// The port; 0 for any that is free.
        public var port: UInt16
        /// The firewall mark as the configuration sets it; nil where it sets none.
        public var firewallMark: UInt32?

        /// Options for the sockets.
        public init(port: UInt16, firewallMark: UInt32?) {
            self.port = port
            self.firewallMark = firewallMark
        }
    }

    /// The answer to a program's message.
    public enum AppMessageReply: Equatable, Sendable {
        /// The status; the host adds what is counted.
        case status(TunnelStatus)
        /// Too many requests are held already: ask later.
        case tooManyAskers
    }

    /// What the host is to do, in the order of the list.
    ///
    /// What has an operation's number is answered by the event that belongs to it, at once or later; the answer to an operation
    /// that was given up is ignored. Of two operations of one kind the host ends with the later.
    public enum Action: Equatable, Sendable {
        /// Tell who started the tunnel that it is up, or why it is not. Exactly once for every start.
        case completeStart(RequestID, TunnelFailure?)
        /// Tell who stopped the tunnel that it is down; the settings may have resisted. Once for all stops since the last one,
        /// and nothing follows it but what a queued start asks for.
        case completeStop(SettingsFailure?)
        /// Tell who asked for a reload what came of it. Exactly once for every reload.
        case completeReload(RequestID, Result<ReloadSummary, TunnelFailure>)
        /// Tell the system that the machine may sleep.
        case completeSleep
        /// Apple's `cancelTunnelWithError`: the tunnel ended by itself, and everything is undone.
        case cancelTunnel(ProviderFailure)
        /// Set Apple's `reasserting`.
        case setReasserting(Bool)

        /// Look up a name, and give up at the deadline. Answered by ``Event/resolved(_:_:)``.
        case resolve(EndpointName, OperationID, deadline: Instant)
        /// Stop looking up a name; no answer is wanted.
        case cancelResolve(OperationID)
        /// Find the address by which an IPv4 address is reached through a network that has only IPv6 (RFC 6052, RFC 7050).
        /// Answered by ``Event/remapped(_:_:)``.
        case remap(IPAddress, OperationID)
        /// Open UDP sockets in place of those that are open. Answered by ``Event/socketsOpened(_:_:)``.
        case openSockets(SocketOptions, OperationID)
        /// Open the sockets anew with their options: the way to the network is another one.
        case rebindSockets
        /// Close the sockets.
        case closeSockets
        /// Apple's `setTunnelNetworkSettings`: put settings in place of those that are, or with nil clear them. Answered by
        /// ``Event/settingsApplied(_:_:)``.
        case apply(PacketTunnelNetworkSettings?, OperationID)

        /// Change the WireGuard device.
        case configure([DeviceChange])
        /// Send an empty message to these peers, so that they learn where we are.
        case sendKeepalives([PublicKey])
        /// Start new handshakes with these peers.
        case initiateHandshakes([PublicKey])
        /// Let no deadline of the device wake the machine until ``resumeDevice``.
        case pauseDevice
        /// The device's deadlines count again: ask it for what became due in the meantime, once, when the list is done.
        case resumeDevice

        /// Answer a program's message. Exactly once for every message whose sender stays.
        case reply(AppMessageID, AppMessageReply)
        /// Give back memory.
        case shed(MemoryShedding)
        /// Write a line to the log, unless it says less than the level.
        case log(LogLevel, LogMessage)
    }
}
