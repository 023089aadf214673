/// What a client of a DNS server by HTTPS did.
public enum DoHServerEvent: Hashable, Sendable {
    /// It asks. ``DoHServerSession/answer(_:_:)`` or ``DoHServerSession/refuse(_:_:)`` is to follow, with the number of the stream.
    case query(stream: Int32, message: [UInt8])
    /// It does not want the answer on this stream any more, for which it waited.
    case abandoned(stream: Int32)
}

/// Why a request gets no DNS message: a status of HTTP (RFC 9110 §15.5).
public enum DoHRefusal: Int, Hashable, Sendable, CaseIterable, Error {
    /// The query is missing, or is none.
    case badRequest = 400
    /// There is nothing at the path.
    case notFound = 404
    /// The method is neither GET nor POST.
    case methodNotAllowed = 405
    /// The body is longer than any message.
    case contentTooLarge = 413
    /// The body is something else than a DNS message.
    case unsupportedMediaType = 415
    /// The header is longer than ``DoHServerLimits/headerByteCount``.
    case headerFieldsTooLarge = 431
}

/// What became of requests, counted from the start.
public struct DoHServerCounts: Hashable, Sendable {
    /// How many were queries.
    public var queries: UInt64 = 0
    /// How many were answered with a status of refusal.
    public var refused: UInt64 = 0
    /// How many streams were refused because too much waited.
    public var overfull: UInt64 = 0

    /// None yet.
    public init() {}
}
