internal import Glibc
internal import Provider

/// What the process takes of the machine.
struct ProcessUsage: Sendable {
    /// Bytes of memory that are there: code and files included.
    var residentByteCount: UInt64
    /// Bytes of memory that are its own.
    var anonymousByteCount: UInt64
    /// How long processors worked for it, in seconds.
    var processorSeconds: Double
    /// How many descriptors are open.
    var openDescriptorCount: Int

    /// What it takes now. What the kernel does not tell is zero.
    static var now: ProcessUsage {
        let status = (try? WholeFile.read("/proc/self/status")).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return ProcessUsage(
            residentByteCount: byteCount("VmRSS:", status), anonymousByteCount: byteCount("RssAnon:", status),
            processorSeconds: Double(HostClock.processorTime().nanoseconds) / 1_000_000_000,
            openDescriptorCount: openDescriptors())
    }

    /// The value of a line such as `VmRSS:    1234 kB`.
    private static func byteCount(_ name: String, _ status: String) -> UInt64 {
        for line in status.split(separator: "\n") where line.hasPrefix(name) {
            let words = line.split { $0 == " " || $0 == "\t" }
            if words.count == 3, let number = UInt64(words[1]) { return number * 1_024 }
        }
        return 0
    }

    private static func openDescriptors() -> Int {
        guard let folder = unsafe opendir("/proc/self/fd") else { return 0 }
        defer { unsafe closedir(folder) }
        // The folder's own descriptor and its two dots are none of ours.
        var count = -3
        while unsafe readdir(folder) != nil { count += 1 }
        return max(0, count)
    }
}
