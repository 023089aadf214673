/// One thing that is wrong with a wg-quick file. It quotes nothing of the file but misspelled names, which are close to a known
/// one, so that no key of somebody's gets into a log.
public struct QuickConfigurationError: Error, Hashable, Sendable {
    /// The number of the line, from 1.
    public var line: Int
    /// The key that the line is about; nil when it is about none that is known.
    public var key: QuickConfigurationKey?
    /// What is wrong.
    public var problem: Problem

    /// What is wrong with a line.
    public enum Problem: Error, Hashable, Sendable {
        /// The value is not what it must be; `item` counts from 1 in a list of several.
        case expected(Expectation, item: Int? = nil)
        /// The line is neither a key with its value nor the head of a section.
        case notAKey
        /// The file begins without the head of a section.
        case outsideOfSections
        /// No key is called so. A name that looks like a known one comes with it.
        case unknownKey(in: QuickConfigurationSection, Misspelling?)
        /// No section is called so. A name that looks like a known one comes with it.
        case unknownSection(Misspelling?)
        /// The key belongs in another section than this one.
        case wrongSection(QuickConfigurationSection)
        /// The section has the key already, on this line.
        case repeated(firstLine: Int)
        /// A peer without its public key.
        case missing
        /// The peer has a section already, whose key is on this line.
        case samePeer(line: Int)
        /// A prefix is taken away that no line before has added.
        case nothingToRemove(item: Int?)
    }

    /// A name as it stands in the file, and the known one that it is close to.
    public struct Misspelling: Hashable, Sendable {
        /// The name in the file.
        public var written: String
        /// The known name.
        public var nearest: String
    }

    /// What a value must be.
    public enum Expectation: Hashable, Sendable {
        case key, peerKey, port, firewallMark, address, resolver, mtu, mtuForIPv6, table, boolean, command
        case prefix, endpoint, bracketsAroundEndpoint, keepalive, plainText
    }
}

/// Everything that is wrong with a wg-quick file, in the order of its lines.
public struct QuickConfigurationErrors: Error, Hashable, Sendable {
    /// The errors: one at least and ``maximumCount`` at most.
    public var errors: [QuickConfigurationError]
    /// How many more there are.
    public var omittedCount: Int

    /// How many errors of a file are kept.
    public static let maximumCount = 50
}

extension QuickConfigurationError: CustomStringConvertible {
    /// The key and what is wrong with it, without the line.
    public var description: String {
        key.map { "\($0.rawValue): \(problem)" } ?? "\(problem)"
    }

    /// One line for a person: the file, the line, the key and what is wrong with it.
    public func text(file: String) -> String { "\(file):\(line): \(self)" }
}

extension QuickConfigurationError.Problem: CustomStringConvertible {
    /// What is wrong, in words.
    public var description: String {
        switch self {
        case .expected(let expectation, let item):
            "expected \(expectation)\(item.map { " as item \($0)" } ?? "")"
        case .notAKey: "expected KEY = VALUE, [Interface] or [Peer]"
        case .outsideOfSections: "expected [Interface] or [Peer] before the first key"
        case .unknownKey(_, let misspelling?):
            "\(misspelling.written): unknown key, did you mean \(misspelling.nearest)?"
        case .unknownKey(let section, nil):
            "unknown key; [\(section.rawValue)] has \(section.keys.map(\.rawValue).joined(separator: ", "))"
        case .unknownSection(let misspelling?):
            "[\(misspelling.written)]: unknown section, did you mean [\(misspelling.nearest)]?"
        case .unknownSection(nil): "unknown section; expected [Interface] or [Peer]"
        case .wrongSection(.interface): "belongs in [Peer], not in [Interface]"
        case .wrongSection(.peer): "belongs in [Interface], not in [Peer]"
        case .repeated(let line): "given twice, first on line \(line)"
        case .missing: "missing from the [Peer] that begins here"
        case .samePeer(let line): "names the same peer as line \(line)"
        case .nothingToRemove(let item):
            "expected a prefix that this peer was given before behind \"-\"\(item.map { " as item \($0)" } ?? "")"
        }
    }
}

extension QuickConfigurationError.Expectation: CustomStringConvertible {
    /// What the value must be, in words that follow "expected".
    public var description: String {
        switch self {
        case .key: "a key of 32 bytes in base64: 44 characters, the last of them \"=\""
        case .peerKey: "the public key of a peer, not zeros"
        case .port: "a port from 0 to 65535"
        case .firewallMark: "\"off\" or a number from 0 to 4294967295, decimal or hexadecimal with 0x"
        case .address: "an address and a prefix length such as 10.8.0.2/24 or fd00:8::2/64"
        case .resolver: "the address of a resolver or a search domain"
        case .mtu: "a number from 68 to 65535"
        case .mtuForIPv6: "at least 1280 because the interface has an IPv6 address"
        case .table: "\"off\", \"auto\" or a number from 1 to 4294967295"
        case .boolean: "\"true\" or \"false\""
        case .command: "a command"
        case .prefix: "a prefix such as 10.8.0.0/24 or fd00:8::/64"
        case .endpoint: "HOST:PORT, ADDRESS:PORT or [IPV6ADDRESS]:PORT with a port from 1 to 65535"
        case .bracketsAroundEndpoint: "brackets around an IPv6 address, such as [2001:db8::1]:51820"
        case .keepalive: "\"off\" or a number from 0 to 65535"
        case .plainText: "text in UTF-8 without control characters"
        }
    }
}
