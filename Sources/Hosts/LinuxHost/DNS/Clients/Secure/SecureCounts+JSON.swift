internal import Provider

extension SecureCounts {
    /// The part `dns.clients.secure` of the status.
    var json: JSONText {
        .object([
            ("tls", .number(tls)), ("https", .number(https)), ("resumed", .number(resumed)),
            ("failedHandshakes", .number(failedHandshakes)), ("refusedRequests", .number(refusedRequests)),
            ("overfullRequests", .number(overfullRequests)),
        ])
    }
}
