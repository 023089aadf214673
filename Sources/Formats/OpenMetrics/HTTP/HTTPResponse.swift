/// A whole answer by HTTP/1.1, after which the connection ends.
public struct HTTPResponse: Sendable {
    /// The status.
    public var status: HTTPStatus
    /// What the body is.
    public var contentType: String
    /// The body.
    public var body: String
    /// True for the answer to HEAD: all of it but the body (RFC 9110 §9.3.2).
    public var isHeadOnly = false

    /// An answer with a body.
    public init(_ status: HTTPStatus, contentType: String, body: String) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    /// An answer that says nothing but its status.
    public init(_ status: HTTPStatus) {
        self.init(status, contentType: "text/plain; charset=utf-8", body: "\(status.rawValue) \(status.reason)\n")
    }

    /// The answer as it is sent.
    public var text: String {
        var text = "HTTP/1.1 \(status.rawValue) \(status.reason)\r\n"
        text += "Content-Type: \(contentType)\r\nContent-Length: \(body.utf8.count)\r\n"
        // RFC 9110 §15.5.6: which methods would do has to be said.
        if status == .methodNotAllowed { text += "Allow: GET, HEAD\r\n" }
        text += "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        return isHeadOnly ? text : text + body
    }
}

extension HTTPRequest {
    /// The answer to a request to a server of one page.
    ///
    /// - Parameters:
    ///   - path: Where the page is.
    ///   - page: Makes the page. It is called only when it is wanted.
    public func response(pageAt path: String, contentType: String, _ page: () -> String) -> HTTPResponse {
        var response: HTTPResponse
        if self.path != path {
            response = HTTPResponse(.notFound)
        } else if method != "GET", method != "HEAD" {
            response = HTTPResponse(.methodNotAllowed)
        } else {
            response = HTTPResponse(.ok, contentType: contentType, body: page())
        }
        response.isHeadOnly = method == "HEAD"
        return response
    }
}
