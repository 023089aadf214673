internal import CLinux
internal import Glibc

/// Standard input, output and error.
public enum StandardStreams {
    /// Opens /dev/null for those that the process was started without. Otherwise the next file that it opens would get such
    /// a number, and be written to as if it were standard error. To be called before anything is opened.
    public static func openMissing() {
        while true {
            let number = unsafe open("/dev/null", O_RDWR)
            if number < 0 || number > STDERR_FILENO {
                if number >= 0 { close(number) }
                return
            }
        }
    }

    /// Writes a line to standard error with one call, so that the lines of several threads do not mix.
    public static func writeErrorLine(_ line: String) {
        var text = line + "\n"
        text.withUTF8 { bytes in
            // The pointer and the length are the string's own. What cannot be written has nobody to complain to.
            _ = unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }
}
