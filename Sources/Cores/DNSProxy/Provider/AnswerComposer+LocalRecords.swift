internal import ByteAccess
internal import DNSMessage

/// Answers of records that the proxy has itself.
extension AnswerComposer {
    /// That the name leads to another one, as the names of addresses do.
    func pointer(
        to target: DomainName, timeToLive: UInt32, to query: borrowing QueryView, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) -> Int {
        let (edns, limit) = (edns(query, transport, nil), limit(query, transport))
        return Self.orNothing {
            () throws(DNSMessageError) in
            var writer = try query.echo.startAnswer(.noError, into: &output)
            let owner = query.question.name
            let view = target.view
            try writer.append(owner: owner, type: .ptr, target: view, timeToLive: timeToLive, into: &output)
            let count = try query.echo.finish(&writer, .noError, edns, into: &output)
            return try MessageEditing.truncate(&output, count: count, to: limit)
        }
    }

    /// Ends an answer of local records: adds the OPT record, and cuts it down to what the client can take.
    func finish(
        _ writer: inout MessageWriter, to query: borrowing QueryView, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) throws(DNSMessageError) -> Int {
        let count = try query.echo.finish(&writer, .noError, edns(query, transport, nil), into: &output)
        return try MessageEditing.truncate(&output, count: count, to: limit(query, transport))
    }
}
