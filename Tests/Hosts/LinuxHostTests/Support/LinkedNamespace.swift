import Glibc

@testable import LinuxHost

/// Runs `body` with a second namespace on the far side of a veth pair, `slt-near` here and `slt-far` there.
func withLinkedNamespace<Result>(
    localAddresses: [String], remoteAddresses: [String], _ body: (borrowing FileDescriptor) throws -> Result
) throws -> Result {
    let other = try makeNetworkNamespace()
    try run("ip", "link", "add", "slt-near", "type", "veth", "peer", "name", "slt-far")
    try run("ip", "link", "set", "slt-far", "netns", path(of: other))
    try configure("slt-near", localAddresses)
    try inNetworkNamespace(other) { try configure("slt-far", remoteAddresses) }
    // Both ends are up only now.
    try awaitLocalRoutes(localAddresses)
    try inNetworkNamespace(other) { try awaitLocalRoutes(remoteAddresses) }
    return try body(other)
}

private func configure(_ name: String, _ addresses: [String]) throws {
    // Without an address that the kernel makes up, and without waiting for duplicates to show.
    try setKernelSetting("net/ipv6/conf/\(name)/addr_gen_mode", "1")
    for address in addresses {
        if address.contains(":") {
            try run("ip", "addr", "add", address, "dev", name, "nodad")
        } else {
            try run("ip", "addr", "add", address, "dev", name)
        }
    }
    try run("ip", "link", "set", name, "up")
}
