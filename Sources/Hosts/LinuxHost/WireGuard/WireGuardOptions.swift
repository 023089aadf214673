internal import Glibc
public import Provider

/// What `sluice [-f] IFNAME` is started with, on its command line and, as wireguard-go, in its environment.
public struct WireGuardOptions: Sendable {
    /// The interface to create.
    public var name: InterfaceName
    /// `WG_TUN_FD`: the descriptor of a TUN device to take over instead.
    public var tunDescriptor: Int32?
    /// `WG_UAPI_FD`: the descriptor of a listening control socket to take over instead of making one.
    public var controlDescriptor: Int32?
    /// `SLUICE_OFFLOADS`: which of the kernel's offloads to use.
    public var offloads: Offloads
    /// `SLUICE_WORKERS`: how many threads move packets.
    public var workers: Int

    /// Options for an interface, the rest from the environment.
    ///
    /// - Throws: `StartFailure` when a variable that must be a descriptor's number is not, an offload has an unknown
    ///   name, or the number of workers is none.
    public init(name: InterfaceName) throws(StartFailure) {
        self.name = name
        tunDescriptor = try Self.descriptor(in: "WG_TUN_FD")
        controlDescriptor = try Self.descriptor(in: "WG_UAPI_FD")
        offloads = try Self.wantedOffloads()
        workers = try Self.wantedWorkers()
    }

    /// What the interface is opened with.
    var interface: TunnelInterfaceOptions {
        TunnelInterfaceOptions(name: name, tunDescriptor: tunDescriptor, offloads: offloads, workers: workers)
    }

    /// `WG_PROCESS_FOREGROUND=1` asks for what `-f` asks for.
    public static var environmentAsksForForeground: Bool {
        variable("WG_PROCESS_FOREGROUND") == "1"
    }

    /// `LOG_LEVEL`: silent, error (also when unset or unknown), verbose or debug.
    public static var logLevel: LogLevel {
        variable("LOG_LEVEL").flatMap { LogLevel(named: $0) } ?? .error
    }

    /// True when `LOG_LEVEL` asks for a log, which a detached daemon keeps its output for then.
    public static var environmentAsksForLog: Bool {
        variable("LOG_LEVEL") != nil && logLevel > .silent
    }

    private static func descriptor(in variable: String) throws(StartFailure) -> Int32? {
        guard let text = Self.variable(variable), !text.isEmpty else { return nil }
        guard let number = Int32(text), number >= 0 else {
            throw StartFailure("\(variable) must be the number of an open descriptor, not \"\(text)\"")
        }
        return number
    }

    private static func wantedWorkers() throws(StartFailure) -> Int {
        guard let text = variable("SLUICE_WORKERS"), !text.isEmpty else { return WorkerCount.standard }
        guard let count = Int(text), (1...TUNOptions.maximumQueues).contains(count) else {
            throw StartFailure("SLUICE_WORKERS must be a number from 1 to \(TUNOptions.maximumQueues), not \"\(text)\"")
        }
        return count
    }

    static func variable(_ name: String) -> String? {
        // Called while there is one thread: nobody changes the environment meanwhile.
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}

/// Why a daemon could not start, in words for its user.
public struct StartFailure: Error, CustomStringConvertible, Sendable {
    /// One line.
    public let description: String

    /// A failure that reads `description`.
    public init(_ description: String) {
        self.description = description
    }

    /// Does `body`; what it throws becomes the end of a line that begins with `what`.
    static func wrapping<Result: ~Copyable, Failure: Error>(
        _ what: String, _ body: () throws(Failure) -> Result
    ) throws(StartFailure) -> Result {
        do throws(Failure) {
            return try body()
        } catch {
            throw StartFailure("\(what): \(error)")
        }
    }
}

/// Lets a write to a closed pipe be an error and no signal.
func ignoreBrokenPipes() {
    _ = signal(SIGPIPE, SIG_IGN)
}
