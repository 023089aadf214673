/// A line for the log. Literal text, numbers, states and reasons go in as they are; anything else has to be declared public or
/// private, so that no name or address slips in by interpolation. Keys cannot be put in at all.
///
/// ```swift
/// "peer \(7) is at \(private: endpoint) since \(public: "noon")"   // peer 7 is at <private> since noon
/// "asked for \(hashed: name)"                                       // asked for <private 5e02c1f7>
/// ```
public struct LogMessage: ExpressibleByStringInterpolation, Equatable, Sendable {
    enum Part: Equatable, Sendable {
        case open(String)
        case hidden(String)
        case hashed(String)
    }

    let parts: [Part]

    /// A line without values.
    public init(stringLiteral value: String) {
        parts = [.open(value)]
    }

    /// A line with values.
    public init(stringInterpolation: StringInterpolation) {
        parts = stringInterpolation.parts
    }

    /// The text without private values and hashes.
    public var text: String { text(with: LogPrivacy()) }

    /// The text with private values printed as `privacy` says.
    public func text(with privacy: LogPrivacy) -> String {
        var text = ""
        for part in parts {
            switch part {
            case .open(let value):
                text += value
            case .hidden(let value):
                text += privacy.showPrivate ? value : "<private>"
            case .hashed(let value):
                if privacy.showPrivate {
                    text += value
                } else if let key = privacy.hashKey {
                    text += "<private \(Self.hash(of: value, with: key))>"
                } else {
                    text += "<private>"
                }
            }
        }
        return text
    }

    /// Eight digits: half of a SipHash is enough to tell values apart, and too little to find one again that was not guessed.
    private static func hash(of value: String, with key: SipHashKey) -> String {
        let digits = String(UInt32(truncatingIfNeeded: key.hash(value)), radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}

/// A type whose values say nothing about anybody: a state, a reason, an error. They may stand in a log as they are.
public protocol PubliclyLoggable: CustomStringConvertible {}

extension LogMessage {
    /// Puts a line together.
    public struct StringInterpolation: StringInterpolationProtocol {
        var parts: [Part] = []

        /// Room for a line.
        public init(literalCapacity: Int, interpolationCount: Int) {
            parts.reserveCapacity(2 * interpolationCount + 1)
        }

        /// Text of the program itself.
        public mutating func appendLiteral(_ literal: String) {
            if !literal.isEmpty { parts.append(.open(literal)) }
        }

        /// A number.
        public mutating func appendInterpolation(_ number: some BinaryInteger) {
            parts.append(.open(number.description))
        }

        /// A state, a reason or an error.
        public mutating func appendInterpolation(_ value: some PubliclyLoggable) {
            parts.append(.open(value.description))
        }

        /// Text that says nothing about anybody: a state or a reason.
        public mutating func appendInterpolation(public value: String) {
            parts.append(.open(value))
        }

        /// Something that belongs to the user, an address for one: prints as `<private>`.
        public mutating func appendInterpolation(private value: some CustomStringConvertible) {
            parts.append(.hidden(value.description))
        }

        /// Something that belongs to the user, and that two lines must be known to have in common: prints as `<private>` with a
        /// hash.
        public mutating func appendInterpolation(hashed value: some CustomStringConvertible) {
            parts.append(.hashed(value.description))
        }

        /// Bytes are what keys are made of: they do not go into a log.
        @available(*, unavailable, message: "bytes may be a key")
        public mutating func appendInterpolation(private value: some Collection<UInt8> & CustomStringConvertible) {}

        /// Bytes are what keys are made of: they do not go into a log.
        @available(*, unavailable, message: "bytes may be a key")
        public mutating func appendInterpolation(hashed value: some Collection<UInt8> & CustomStringConvertible) {}
    }
}
