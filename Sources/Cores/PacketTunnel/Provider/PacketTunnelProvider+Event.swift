public import IPPacket
public import Provider
public import WireGuard

extension PacketTunnelProvider {
    /// Names a start or a reload, until it is completed. The host chooses the numbers.
    public struct RequestID: Hashable, Sendable {
        /// The number.
        public var rawValue: UInt64

        /// The request with a number.
        public init(rawValue: UInt64) {
            self.rawValue = rawValue
        }
    }

    /// Names something that the host was asked to do, in its answer. No number is used twice.
    public struct OperationID: Hashable, Comparable, Sendable {
        /// The number.
        public var rawValue: UInt64

        /// The operation with a number.
        public init(rawValue: UInt64) {
            self.rawValue = rawValue
        }

        /// Orders what was asked for first first.
        public static func < (left: OperationID, right: OperationID) -> Bool { left.rawValue < right.rawValue }
    }

    /// What a tunnel is started with, or is to become.
    public struct Request: Equatable, Sendable {
        /// The host's name for the request.
        public var id: RequestID
        /// The tunnel.
        public var configuration: TunnelConfiguration
        /// What wins over the configuration's own settings of the interface.
        public var overrides: DeviceOverrides
        /// What the program that asks for a start gave; nil when the system asks, and in a reload.
        public var options: StartOptions?

        /// A request for a tunnel.
        public init(
            id: RequestID, configuration: TunnelConfiguration, overrides: DeviceOverrides = DeviceOverrides(),
            options: StartOptions? = nil
        ) {
            self.id = id
            self.configuration = configuration
            self.overrides = overrides
            self.options = options
        }
    }

    /// What a program asks a running provider. Who reads messages answers those that are none.
    public enum AppMessage: Equatable, Sendable {
        /// Send the status: when it is no longer the one with the revision `after`, and at the latest after `timeLimit`. Without
        /// a revision, or without time, at once.
        case status(after: UInt64?, timeLimit: Interval)
    }

    /// What happened, for ``PacketTunnelProvider/handle(_:at:)-(Event,_)``.
    public enum Event: Equatable, Sendable {
        /// Apple's `startTunnel`: bring the tunnel up. Answered by ``Action/completeStart(_:_:)``.
        case start(Request)
        /// Apple's `stopTunnel`: take the tunnel down. Answered by ``Action/completeStop(_:)``.
        case stop(ProviderStopReason)
        /// The host cannot go on: its interface is gone, for one.
        case fail(ProviderFailure)
        /// Make the tunnel what the request says, and touch nothing that stays. Answered by ``Action/completeReload(_:_:)``.
        case reload(Request)
        /// The machine goes to sleep. Answered by ``Action/completeSleep``.
        case sleep
        /// The machine woke up.
        case wake
        /// The way to the network is this one now.
        case pathChanged(NetworkPath)
        /// A name was looked up: its endpoints in the resolver's order of preference, at least one, or why there are none.
        case resolved(OperationID, Result<[Endpoint], ResolutionFailure>)
        /// The address by which another one is reached through this network; nil when there is none.
        case remapped(OperationID, IPAddress?)
        /// The sockets are open, or why not. When they are not, those that were open before still are.
        case socketsOpened(OperationID, SocketFailure?)
        /// The network settings are in place, or why not.
        case settingsApplied(OperationID, NetworkSettingsError?)
        /// WireGuard has new keys with a peer.
        case handshakeCompleted(PublicKey)
        /// A peer did not answer for 90 seconds.
        case handshakeGivenUp(PublicKey)
        /// A peer is heard from at a new endpoint.
        case endpointChanged(PublicKey, Endpoint)
        /// A program sent a message. Answered by ``Action/reply(_:_:)``.
        case appMessage(AppMessageID, AppMessage)
        /// A program that sent a message went away: it needs no answer any more.
        case appLeft(AppMessageID)
        /// The process uses this many bytes of memory.
        case memoryUsed(UInt64)
    }
}
