internal import JSON5
internal import PacketTunnel
internal import Provider

/// The messages of programs as they travel over the control socket: a line of JSON each way.
///
/// ```
/// {"status": {}}                                      the status at once
/// {"status": {"after": 17, "timeLimitSeconds": 60}}   the status when its revision is no longer 17, or after a minute
/// ```
enum AppMessageText {
    /// The longest message in bytes.
    static let maximumLength = 4_096

    /// The message in a line; one that is not understood is an unknown one.
    static func message(in line: RawSpan) -> PacketTunnelProvider.AppMessage {
        guard let value = try? JSON5Value(reading: line), case .object(let members) = value.content,
            members.count == 1, members[0].name == "status", case .object(let options) = members[0].value.content
        else { return .unknown }
        var revision: UInt64?
        var timeLimit = Interval(nanoseconds: 0)
        for option in options {
            guard case .integer(let number) = option.value.content, number >= 0 else { return .unknown }
            switch option.name {
            case "after": revision = UInt64(number)
            // The provider has a limit of its own, which is far lower.
            case "timeLimitSeconds": timeLimit = .seconds(UInt64(min(number, 86_400)))
            default: return .unknown
            }
        }
        return .status(after: revision, timeLimit: timeLimit)
    }

    /// The line that asks for the status.
    static func statusRequest(after revision: UInt64?, timeLimitSeconds: UInt64) -> String {
        var options: [(String, JSONText)] = []
        if let revision {
            options = [("after", .number(revision)), ("timeLimitSeconds", .number(timeLimitSeconds))]
        }
        return JSONText.object([("status", .object(options))]).text + "\n"
    }

    /// The line that says why there is no other answer.
    static func failure(_ reason: String) -> String {
        JSONText.object([("error", .string(reason))]).text + "\n"
    }
}
