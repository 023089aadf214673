public import Provider

/// When a simulated system answers, and what.
public enum ScriptedAnswer<Value> {
    /// This, after a time.
    case after(Interval, Value)
    /// Nothing, ever.
    case never

    /// This, without delay.
    public static func now(_ value: Value) -> ScriptedAnswer {
        .after(.milliseconds(0), value)
    }
}
