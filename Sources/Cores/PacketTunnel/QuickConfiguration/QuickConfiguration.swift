/// What a file of wg-quick(8) says: a tunnel, and what the machine is to do around it.
public struct QuickConfiguration: Equatable, Sendable {
    /// The device, its peers and the settings of its interface.
    public var tunnel = TunnelConfiguration()
    /// Where the routes to what the peers are allowed go.
    public var table: RoutingTable = .automatic
    /// The commands to run as the tunnel goes up and down.
    public var hooks = Hooks()
    /// True when the file is to be written again from the tunnel's state as it goes down.
    public var savesConfiguration = false

    /// A tunnel without keys and peers.
    public init() {}
}

extension QuickConfiguration {
    /// `Table`: which routing table the routes go into.
    public enum RoutingTable: Hashable, Sendable {
        /// The main table, and for default routes a table of their own with rules around it.
        case automatic
        /// No routes are made.
        case off
        /// The table of this number, which is above 0.
        case number(UInt32)
    }

    /// The commands around a tunnel, each for the shell, in the order to run them. `%i` stands for the name of the interface.
    public struct Hooks: Hashable, Sendable {
        /// Before the interface is made.
        public var preUp: [String] = []
        /// After everything is set up.
        public var postUp: [String] = []
        /// Before anything is taken down.
        public var preDown: [String] = []
        /// After the interface is gone.
        public var postDown: [String] = []

        /// No commands.
        public init() {}

        /// True when there are no commands.
        public var isEmpty: Bool { preUp.isEmpty && postUp.isEmpty && preDown.isEmpty && postDown.isEmpty }

        /// The command with every `%i` replaced by `interfaceName`.
        public static func expanded(_ command: String, interfaceName: String) -> String {
            var text = ""
            var rest = command[...]
            while let percent = rest.firstIndex(of: "%") {
                text += rest[..<percent]
                let next = rest.index(after: percent)
                if next < rest.endIndex, rest[next] == "i" {
                    text += interfaceName
                    rest = rest[rest.index(after: next)...]
                } else {
                    text += "%"
                    rest = rest[next...]
                }
            }
            return text + rest
        }
    }
}
