internal import Glibc
public import Provider

// Both are on every line anyway, or say nothing about anybody.
extension SystemCallError: PubliclyLoggable {}
extension InterfaceName: PubliclyLoggable {}

/// Writes lines to standard error, each with one call, so that lines of several threads do not mix.
public struct Log: Sendable {
    /// What is written, and what is left out.
    public let level: LogLevel
    /// How private parts of lines are printed.
    public let privacy: LogPrivacy
    private let name: String
    private let descriptorNumber: Int32

    /// A log on standard error, whose lines carry `name`.
    public init(level: LogLevel, name: String, privacy: LogPrivacy = LogPrivacy()) {
        self.init(level: level, name: name, privacy: privacy, descriptorNumber: STDERR_FILENO)
    }

    /// The log that a configuration asks for. The key of the hashes is drawn afresh.
    public init(_ configuration: DaemonConfiguration) {
        let level: LogLevel =
            switch configuration.log.level {
            case .silent: .silent
            case .error: .error
            case .info: .info
            case .debug: .verbose
            }
        let key = SipHashKey(UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        self.init(
            level: level, name: configuration.interfaceName?.string ?? "sluice",
            privacy: LogPrivacy(showPrivate: configuration.log.showsPrivate, hashKey: key))
    }

    /// A log on a descriptor that stays open.
    init(level: LogLevel, name: String, privacy: LogPrivacy = LogPrivacy(), descriptorNumber: Int32) {
        self.level = level
        self.privacy = privacy
        self.name = name
        self.descriptorNumber = descriptorNumber
    }

    /// Writes what went wrong.
    public func error(_ message: @autoclosure () -> LogMessage) {
        if level >= .error { write("ERROR", message()) }
    }

    /// Writes what a person who runs the program wants to know.
    public func info(_ message: @autoclosure () -> LogMessage) {
        if level >= .info { write("INFO", message()) }
    }

    /// Writes what happens in detail.
    public func verbose(_ message: @autoclosure () -> LogMessage) {
        if level >= .verbose { write("DEBUG", message()) }
    }

    /// Writes a line of a core, whose `importance` is the quietest level at which it is said.
    public func write(_ message: @autoclosure () -> LogMessage, importance: LogLevel) {
        switch importance {
        case .silent: break
        case .error: error(message())
        case .info: info(message())
        case .verbose: verbose(message())
        }
    }

    private func write(_ kind: StaticString, _ message: LogMessage) {
        var line = "\(kind): (\(name)) \(message.text(with: privacy))\n"
        line.withUTF8 { bytes in
            // The pointer and the length are the string's own. A log that cannot be written has nobody to complain to.
            _ = unsafe Glibc.write(descriptorNumber, bytes.baseAddress, bytes.count)
        }
    }
}
