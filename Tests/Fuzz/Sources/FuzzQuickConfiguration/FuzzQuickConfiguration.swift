import FuzzSupport
import PacketTunnel
import WireGuard

/// The input is a wg-quick file. A configuration that is read from it, written as a file again, must read as the same; what is
/// wrong must be told line by line.
@c(LLVMFuzzerTestOneInput)
public func fuzzQuickConfiguration(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let copy = [UInt8](copying: bytes)
        do throws(QuickConfigurationErrors) {
            let configuration = try copy.read { bytes throws(QuickConfigurationErrors) in
                try QuickConfiguration(reading: bytes)
            }
            let file = configuration.file()
            let again = try file.withBytes { bytes throws(QuickConfigurationErrors) in
                try QuickConfiguration(reading: bytes)
            }
            require(again == configuration, "what is written reads as the same")
        } catch {
            let lines = error.errors.map(\.line)
            require(!lines.isEmpty, "errors are told")
            require(lines.count <= QuickConfigurationErrors.maximumCount, "errors are bounded")
            require(lines == lines.sorted(), "errors are in the order of their lines")
            require(lines.allSatisfy { (1...copy.count + 1).contains($0) }, "every error has a line of the file")
            for error in error.errors {
                let text = error.text(file: "wg0.conf")
                require(text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "an error is one plain line")
            }
        }
    }
}
