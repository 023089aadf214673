/// Something that a test needs is not there. Views cannot be handed to `#require`, since they cannot leave their scope.
public struct Absent: Error {
    /// That it is not there.
    public init() {}
}
