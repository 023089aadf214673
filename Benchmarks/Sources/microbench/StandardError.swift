import Glibc

/// Where messages go that are not the result.
struct StandardError: TextOutputStream {
    mutating func write(_ text: String) {
        let bytes = Array(text.utf8)
        // The buffer is as long as the call is told.
        unsafe bytes.withUnsafeBytes { _ = unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
