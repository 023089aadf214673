/// The version of the program.
public enum ProgramVersion {
    /// As people write it.
    public static let text = "0.1"
}
