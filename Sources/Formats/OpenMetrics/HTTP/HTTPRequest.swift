/// What of a request by HTTP/1 matters to a server of few pages: method and path.
public struct HTTPRequest: Hashable, Sendable {
    /// The method, as it was written: methods are case-sensitive (RFC 9110 §9.1).
    public var method: String
    /// The path without a query, as it was written: nothing in it is decoded.
    public var path: String

    /// A request.
    public init(method: String, path: String) {
        self.method = method
        self.path = path
    }
}

/// How a request went, as far as a server of few pages has to say (RFC 9110 §15).
public enum HTTPStatus: Int, Hashable, Sendable, CaseIterable {
    case ok = 200
    case badRequest = 400
    case notFound = 404
    case methodNotAllowed = 405
    case targetTooLong = 414
    case headerTooLarge = 431
    case serviceUnavailable = 503
    case versionNotSupported = 505

    /// The words behind the number in a status line.
    public var reason: String {
        switch self {
        case .ok: "OK"
        case .badRequest: "Bad Request"
        case .notFound: "Not Found"
        case .methodNotAllowed: "Method Not Allowed"
        case .targetTooLong: "URI Too Long"
        case .headerTooLarge: "Request Header Fields Too Large"
        case .serviceUnavailable: "Service Unavailable"
        case .versionNotSupported: "HTTP Version Not Supported"
        }
    }
}
