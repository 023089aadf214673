public import Provider

/// What becomes of a client's query.
public enum Decision: Hashable, Sendable {
    /// The answer is at the start of the output; its length in bytes.
    case answer(Int)
    /// An ``DNSProxyAction/answer(_:_:)`` will follow.
    case pending
    /// It gets no answer.
    case drop(DropReason)
}

/// Why a query gets no answer.
public enum DropReason: UInt8, Hashable, Sendable, CaseIterable {
    /// There is not even a whole header.
    case noHeader
    /// It is an answer itself.
    case notAQuery
}

/// What becomes of a new flow: what is not handled is terminated, since a DNS proxy cannot let it pass.
public enum FlowDecision: Hashable, Sendable {
    /// The provider handles it.
    case handle
    /// It is ended.
    case terminate
}

/// What the host is to do, in the order of the list.
public enum DNSProxyAction: Equatable, Sendable {
    /// Put a query to a server: ``DNSProxyProvider/writeQuery(of:entropy:into:)`` has its bytes. Ends with
    /// ``DNSProxyProvider/received(_:for:freshness:reader:at:)``, ``DNSProxyProvider/failed(_:_:at:)`` or a ``cancel(_:)``.
    case exchange(Exchange)
    /// Nobody waits for this exchange any more.
    case cancel(ExchangeID)
    /// Give a client the answer to its query.
    case answer(ClientToken, [UInt8])
    /// Use no connection to a server any more that is open: the network is another one.
    case resetConnections
    /// Write a line.
    case log(LogLevel, LogMessage)
}
