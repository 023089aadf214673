internal import Provider

extension SecureCounts {
    /// The part `dns.clients.secure` of the status.
    var json: JSONText {
        .object([
            ("tls", .number(tls)), ("https", .number(https)), ("resumed", .number(resumed)),
            ("handshaking", .number(handshaking)), ("failedHandshakes", .number(failedHandshakes)),
            ("overlongHandshakes", .number(overlongHandshakes)), ("displacedHandshakes", .number(displacedHandshakes)),
            ("refusedRequests", .number(refusedRequests)), ("overfullRequests", .number(overfullRequests)),
        ])
    }
}
