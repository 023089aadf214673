import Glibc
import IPPacket
import TestSupport

@testable import LinuxHost

/// Waits until the kernel takes datagrams to these addresses of the calling thread's namespace, written with or without a prefix
/// length, whose interfaces must be up. For IPv6 it does so only some time after it was given the address, even when it does not
/// look for duplicates; IPv4 needs no waiting.
func awaitLocalRoutes(_ addresses: String...) throws {
    try awaitLocalRoutes(addresses)
}

/// The same for an array.
func awaitLocalRoutes(_ addresses: [String]) throws {
    for text in addresses where text.contains(":") {
        guard case .v6(let address) = address(String(text.prefix { $0 != "/" })) else { continue }
        // The table names each destination by its 32 digits and the prefix length, both in hexadecimal.
        let digits = [address.high, address.low].map { half in
            let digits = String(half, radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }
        try eventually("the local route to \(text)") {
            try readKernelTable("ipv6_route").contains("\(digits.joined()) 80 ") ? () : nil
        }
    }
}

/// What the kernel tells about the calling thread's namespace in a file of its network folder.
private func readKernelTable(_ name: String) throws -> String {
    let descriptor = FileDescriptor(
        adopting: try systemCall("open") { unsafe open("/proc/thread-self/net/\(name)", O_RDONLY | O_CLOEXEC) })
    let number = descriptor.rawValue
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    while true {
        // The pointer lives for the call, and the length is the array's.
        let count = try systemCall("read") { unsafe read(number, &chunk, chunk.count) }
        if count == 0 { return String(decoding: text, as: UTF8.self) }
        text += chunk[..<count]
    }
}
