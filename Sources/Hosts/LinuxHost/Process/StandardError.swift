internal import Glibc

/// Standard error: what a user reads when something goes wrong.
public enum StandardError {
    /// Writes a line with one call, so that the lines of several threads do not mix.
    public static func writeLine(_ line: String) {
        var text = line + "\n"
        text.withUTF8 { bytes in
            // The pointer and the length are the string's own. What cannot be written has nobody to complain to.
            _ = unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }
}
