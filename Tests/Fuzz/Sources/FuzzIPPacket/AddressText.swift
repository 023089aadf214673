import FuzzSupport
import Glibc
import IPPacket

/// Text is an address exactly when `inet_pton` says so, it is the same one, and it prints as `inet_ntop` prints it.
func checkText(_ bytes: RawSpan) {
    var text = [UInt8](copying: bytes)
    if let prefix = try? IPPrefix(parsingText: bytes) {
        let again = try? IPPrefix(parsing: prefix.description)
        require(again == prefix, "a printed prefix is read back")
        require(prefix.contains(prefix.address), "a prefix contains its address")
        require(Int(prefix.length) <= prefix.address.bitWidth, "a prefix is not longer than its address")
    }
    let ipv4 = try? IPv4Address(parsingText: bytes)
    let ipv6 = try? IPv6Address(parsingText: bytes)
    // A zero byte ends a text for C.
    if text.contains(0) {
        require(ipv4 == nil && ipv6 == nil, "no address holds a zero byte")
        return
    }
    text.append(0)
    require(ipv4.map { IPAddress.v4($0).description } == printed(text, AF_INET), "IPv4 as in C")
    require(ipv6.map { IPAddress.v6($0).description } == printed(text, AF_INET6), "IPv6 as in C")
    let either = try? IPAddress(parsingText: bytes)
    require(either == (ipv4.map(IPAddress.v4) ?? ipv6.map(IPAddress.v6)), "either family")
}

/// What the C library makes of a text that ends in a zero: read and printed again; nil when it is no address.
private func printed(_ text: [UInt8], _ family: CInt) -> String? {
    var octets = [UInt8](repeating: 0, count: 16)
    var output = [UInt8](repeating: 0, count: 64)
    // inet_pton reads up to the zero and writes at most 16 bytes; inet_ntop reads those and writes at most 46 characters.
    unsafe text.withUnsafeBytes { text in
        let characters = text.assumingMemoryBound(to: CChar.self)
        guard let start = unsafe characters.baseAddress, unsafe inet_pton(family, start, &octets) == 1 else { return }
        unsafe output.withUnsafeMutableBytes { output in
            _ = unsafe inet_ntop(family, octets, output.assumingMemoryBound(to: CChar.self).baseAddress, 64)
        }
    }
    return output[0] == 0 ? nil : String(decoding: output.prefix { $0 != 0 }, as: UTF8.self)
}
