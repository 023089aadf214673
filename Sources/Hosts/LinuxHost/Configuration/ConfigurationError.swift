public import JSON5
public import PacketTunnel

/// One thing that is wrong with the daemon's configuration, or with a file that it names.
public struct ConfigurationError: Error, Hashable, Sendable {
    /// The file, as it was named.
    public var file: String
    /// The number of the line, from 1; nil for a file that cannot be read.
    public var line: Int?
    /// The number of the character in the line, where the text is no JSON5 from there on.
    public var column: Int?
    /// The key from the top on, such as `dns.upstreams[1].url`; nil where there is none.
    public var key: String?
    /// What is wrong.
    public var problem: Problem

    /// What is wrong with a configuration.
    public enum Problem: Hashable, Sendable {
        /// The text is not JSON5.
        case syntax(JSON5Error.Problem)
        /// The wg-quick file is wrong.
        case quick(QuickConfigurationError)
        /// The file cannot be used.
        case file(ConfigurationFileError)
        /// There is no such key. The one that is close to it comes with it, or all that there are.
        case unknownKey(nearest: String?, known: [String])
        /// The object has the key already, on this line.
        case repeatedKey(firstLine: Int)
        /// The object needs the key.
        case missing
        /// The value is not what it must be, in words that follow "expected".
        case expected(String)
        /// The value is refused because of what stands elsewhere, in words.
        case conflict(String)
        /// Nothing has this name. The name that is close to it comes with it.
        case unknownName(String, what: String, nearest: String?)
        /// The daemon cannot do this part yet.
        case unsupported(String)
    }
}

/// Everything that is wrong with a configuration: first the file itself in the order of its lines, then files that it names.
public struct ConfigurationErrors: Error, Hashable, Sendable {
    /// The errors: one at least and ``maximumCount`` at most.
    public var errors: [ConfigurationError]
    /// How many more there are.
    public var omittedCount: Int

    /// How many errors are kept.
    public static let maximumCount = 50

    /// One line for each error, and one for those that were left out.
    public var lines: [String] {
        errors.map(\.description) + (omittedCount > 0 ? ["and \(omittedCount) more"] : [])
    }
}

extension ConfigurationError: CustomStringConvertible {
    /// One line for a person: the file, the line, the key and what is wrong with it.
    public var description: String {
        if case .quick(let error) = problem { return error.text(file: file) }
        var text = file
        if let line { text += ":\(line)" }
        if let column { text += ":\(column)" }
        if let key { text += ": \(key)" }
        return "\(text): \(problem)"
    }
}

extension ConfigurationError.Problem: CustomStringConvertible {
    /// What is wrong, in words.
    public var description: String {
        switch self {
        case .syntax(let problem): "\(problem)"
        case .quick(let error): "\(error)"
        case .file(let error): "\(error)"
        case .unknownKey(let nearest?, _): "unknown key, did you mean \"\(nearest)\"?"
        case .unknownKey(nil, let known): "unknown key; there are \(known.joined(separator: ", "))"
        case .repeatedKey(let line): "given twice, first on line \(line)"
        case .missing: "missing"
        case .expected(let what): "expected \(what)"
        case .conflict(let reason): reason
        case .unknownName(let name, let what, let nearest?):
            "no \(what) is called \"\(name)\", did you mean \"\(nearest)\"?"
        case .unknownName(let name, let what, nil): "no \(what) is called \"\(name)\""
        case .unsupported(let part): "\"\(part)\" is not supported yet"
        }
    }
}

/// Collects what is wrong with one configuration.
final class ConfigurationProblems {
    /// The file that is being read.
    let file: String
    /// The lines of the keys that were read.
    var lines: [String: Int] = [:]
    private var errors: [ConfigurationError] = []
    private var omittedCount = 0
    /// More than are shown, so that those that are shown can be the first of the file.
    private static let limit = 1000

    init(file: String) {
        self.file = file
    }

    /// Notes something wrong in the file that is being read.
    func note(line: Int, key: String?, _ problem: ConfigurationError.Problem) {
        note(ConfigurationError(file: file, line: line, column: nil, key: key, problem: problem))
    }

    /// Notes something wrong anywhere.
    func note(_ error: ConfigurationError) {
        if errors.count < Self.limit { errors.append(error) } else { omittedCount += 1 }
    }

    /// Notes that there are more that nobody lists.
    func noteOmitted(_ count: Int) {
        omittedCount += count
    }

    /// All that was noted; nil for nothing.
    var result: ConfigurationErrors? {
        if errors.isEmpty { return nil }
        let order = errors.enumerated().sorted { left, right in
            let (first, second) = (left.element, right.element)
            let isOwn = (first.file == file, second.file == file)
            if isOwn.0 != isOwn.1 { return isOwn.0 }
            if isOwn.0 && first.line != second.line { return first.line ?? 0 < second.line ?? 0 }
            return left.offset < right.offset
        }
        let kept = order.prefix(ConfigurationErrors.maximumCount).map(\.element)
        return ConfigurationErrors(errors: kept, omittedCount: omittedCount + errors.count - kept.count)
    }
}
