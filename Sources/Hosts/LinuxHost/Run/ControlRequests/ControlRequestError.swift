internal import JSON5

/// Why a line is no request.
enum ControlRequestError: Error, Hashable, Sendable {
    /// The line is not JSON.
    case notJSON(JSON5Error)
    /// It is no object with one member.
    case notOneRequest
    /// There is no request with this name.
    case unknownRequest(String)
    /// What stands behind the request's name is no object.
    case notOptions(of: ControlRequest.Verb)
    /// The request has no option with this name.
    case unknownOption(String, of: ControlRequest.Verb, known: [ControlRequest.Option])
    /// An option is given twice.
    case repeatedOption(String, of: ControlRequest.Verb)
    /// An option is not what it must be.
    case unusableValue(of: ControlRequest.Option, in: ControlRequest.Verb, expected: Expectation)

    /// What the value of an option must be.
    enum Expectation: String, Sendable {
        case number = "a whole number from 0 to 9223372036854775807"
        case name = "a domain name such as \"example.com\""
    }
}

extension ControlRequestError: CustomStringConvertible {
    /// What is wrong and what was expected, in words.
    var description: String {
        switch self {
        case .notJSON(let error): "the request is not JSON: \(error.problem) at character \(error.position.column)"
        case .notOneRequest: "expected an object with one request: \(Self.list(ControlRequest.Verb.allCases))"
        case .unknownRequest(let name):
            "this request is not known: \"\(name)\"; there are \(Self.list(ControlRequest.Verb.allCases))"
        case .notOptions(let verb): "\(verb.rawValue): expected an object with its options"
        case .unknownOption(let name, let verb, let known):
            "\(verb.rawValue): unknown option \"\(name)\"; there are \(Self.list(known))"
        case .repeatedOption(let name, let verb): "\(verb.rawValue): \"\(name)\" is given twice"
        case .unusableValue(let option, let verb, let expected):
            "\(verb.rawValue).\(option.rawValue): expected \(expected.rawValue)"
        }
    }

    private static func list(_ names: [some RawRepresentable<String>]) -> String {
        names.map(\.rawValue).joined(separator: ", ")
    }
}
