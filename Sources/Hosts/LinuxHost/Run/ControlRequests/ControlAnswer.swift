internal import ByteAccess
internal import JSON5

/// The lines that answer requests: those that belong to no part of the daemon, and what all have in common.
enum ControlAnswer {
    /// The line that says why there is no other answer.
    static func failure(_ reason: String) -> String {
        JSONText.object([("error", .string(reason))]).text + "\n"
    }

    /// The line that says how many answers were forgotten.
    static func flushed(_ count: Int) -> String {
        JSONText.object([("flushed", .number(count))]).text + "\n"
    }

    /// What an answer says.
    ///
    /// - Throws: The reason when it says why there is no other; `notUnderstood` when it is no answer at all.
    static func fields(of line: String) throws(StatusFailure) -> JSONFields {
        guard let value = try? JSON5Value(reading: line.utf8Span.span.octets), let fields = JSONFields(value) else {
            throw .notUnderstood
        }
        if let reason = fields.string("error") { throw .refused(reason) }
        return fields
    }
}
