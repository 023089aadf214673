internal import Glibc

/// How much a daemon says on its standard error.
public enum LogLevel: Int, Comparable, Sendable {
    /// Nothing.
    case silent
    /// What goes wrong.
    case error
    /// What happens, too.
    case verbose

    /// Orders quieter levels first.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }

    /// The level that `LOG_LEVEL` names: `silent`, `error`, or `verbose` and `debug`, which mean the same; nil for
    /// anything else.
    public init?(named name: String) {
        switch name {
        case "silent": self = .silent
        case "error": self = .error
        case "verbose", "debug": self = .verbose
        default: return nil
        }
    }
}

/// A line for the log. Literal text, numbers and errors of ours go in as they are; anything else has to be declared
/// public or private, so that no key, name or address slips in by interpolation.
public struct LogMessage: ExpressibleByStringInterpolation, Sendable {
    /// The text, private parts replaced.
    public let text: String

    /// A line without values.
    public init(stringLiteral value: String) {
        text = value
    }

    /// A line with values.
    public init(stringInterpolation: StringInterpolation) {
        text = stringInterpolation.text
    }

    /// Puts a line together.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        /// Room for a line.
        public init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity + interpolationCount * 8)
        }

        /// Text of the program itself.
        public mutating func appendLiteral(_ literal: String) {
            text += literal
        }

        /// A number.
        public mutating func appendInterpolation(_ number: some BinaryInteger) {
            text += number.description
        }

        /// A failed system call.
        public mutating func appendInterpolation(_ error: SystemCallError) {
            text += error.description
        }

        /// The name of an interface: it is on every line anyway.
        public mutating func appendInterpolation(_ name: InterfaceName) {
            text += name.string
        }

        /// Text that says nothing about anybody: a state or a reason.
        public mutating func appendInterpolation(public value: String) {
            text += value
        }

        /// Something that belongs to the user, an address for one: prints as `<private>`.
        public mutating func appendInterpolation<Value>(private value: Value) {
            text += "<private>"
        }
    }
}

/// Writes lines to standard error, each with one call, so that lines of several threads do not mix.
public struct Log: Sendable {
    /// What is written, and what is left out.
    public let level: LogLevel
    private let name: String
    private let descriptorNumber: Int32

    /// A log on standard error, whose lines carry `name`.
    public init(level: LogLevel, name: String) {
        self.init(level: level, name: name, descriptorNumber: STDERR_FILENO)
    }

    /// A log on a descriptor that stays open.
    init(level: LogLevel, name: String, descriptorNumber: Int32) {
        self.level = level
        self.name = name
        self.descriptorNumber = descriptorNumber
    }

    /// Writes what went wrong.
    public func error(_ message: @autoclosure () -> LogMessage) {
        if level >= .error { write("ERROR", message()) }
    }

    /// Writes what happens.
    public func verbose(_ message: @autoclosure () -> LogMessage) {
        if level >= .verbose { write("DEBUG", message()) }
    }

    private func write(_ kind: StaticString, _ message: LogMessage) {
        var line = "\(kind): (\(name)) \(message.text)\n"
        line.withUTF8 { bytes in
            // The pointer and the length are the string's own. A log that cannot be written has nobody to complain to.
            _ = unsafe Glibc.write(descriptorNumber, bytes.baseAddress, bytes.count)
        }
    }
}
