import ByteAccess
import CLinux
import Glibc
import IPPacket
import Provider
import Testing
import WireGuard

@testable import LinuxHost

/// Packets: what leaves by the tunnel, by the link next to it, and the way that answers take.
@Suite struct TunnelTrafficTests {
    /// A machine with a tunnel and a link, behind whose other end there is another network.
    private func withNetwork(
        included: [String] = ["0.0.0.0/0", "::/0"], excluded: [String] = [],
        _ options: RoutingOptions = RoutingOptions(),
        _ body: (borrowing TUNDevice, InterfaceSettings, borrowing FileDescriptor) throws -> Void
    ) throws {
        try withTunnel("slt-tunnel") { tun, settings, _ in
            try withLinkedNamespace(
                localAddresses: ["10.6.0.1/24", "fd00:6::1/64"],
                remoteAddresses: ["10.6.0.2/24", "198.51.100.7/32", "fd00:6::2/64", "2001:db8:7::7/128"]
            ) { far in
                try run("ip", "route", "add", "default", "via", "10.6.0.2")
                try run("ip", "-6", "route", "add", "default", "via", "fd00:6::2")
                _ = try settings.apply(
                    tunnelSettings(["10.8.0.2/24", "fd00:8::2/64"], included: included, excluded: excluded),
                    routing: options)
                try body(tun, settings, far)
                _ = settings.clear()
            }
        }
    }

    /// True when an echo request to an address of the far side is answered within a second.
    private func isAnswered(_ destination: String) -> Bool {
        (try? output(of: "ping", "-n", "-c", "1", "-W", "1", destination)) != nil
    }

    /// The headers of the packets that wait at the tunnel.
    private func headers(_ tun: borrowing TUNDevice) throws -> [IPHeader] {
        var found: [IPHeader] = []
        var buffer = [UInt8](repeating: 0, count: TUNDevice.maximumPacketLength)
        while true {
            var span = buffer.mutableSpan
            var bytes = span.mutableOctets
            guard let count = try tun.read(into: &bytes) else { return found }
            let packet = Array(buffer[..<count])
            let packetSpan = packet.span
            found.append(try IPHeader(parsing: packetSpan.octets))
        }
    }

    private func destinations(_ tun: borrowing TUNDevice) throws -> Set<String> {
        Set(try headers(tun).map(\.destination.description))
    }

    @Test func aFullTunnelTakesPacketsButForExclusions() throws {
        try withNetwork(excluded: ["198.51.100.0/24", "2001:db8:7::/48"]) { tun, _, _ in
            for answered in ["10.6.0.2", "198.51.100.7", "fd00:6::2", "2001:db8:7::7"] {
                #expect(isAnswered(answered))
            }
            for taken in ["203.0.113.1", "2001:db8::1"] { #expect(!isAnswered(taken)) }
            let destinations = try destinations(tun)
            #expect(destinations.isSuperset(of: ["203.0.113.1", "2001:db8::1"]))
            #expect(destinations.isDisjoint(with: ["10.6.0.2", "198.51.100.7", "fd00:6::2", "2001:db8:7::7"]))
        }
    }

    @Test(arguments: [("198.51.100.7", "10.6.0.1"), ("2001:db8:7::7", "fd00:6::1")], [0, 1])
    func aConnectionThatCameInByTheLinkIsAnsweredByIt(ends: (String, String), reversePathFilter: Int) throws {
        try withNetwork { tun, _, far in
            for interface in ["all", "slt-near"] {
                try setKernelSetting("net/ipv4/conf/\(interface)/rp_filter", "\(reversePathFilter)")
            }
            // The far side is to know the way: it would ask for it by its other address, whose question a strict filter drops.
            #expect(isAnswered(ends.1.contains(":") ? "fd00:6::2" : "10.6.0.2"))
            let listener = try makeListener(address(ends.1), port: 7_777)
            #expect(try connects(from: ends.0, to: ends.1, in: far))
            // The machine's own packets to the same place take the tunnel still.
            #expect(!isAnswered(ends.0))
            #expect(try destinations(tun).contains(ends.0))
            // And it is the firewall's marks that did it.
            try run("nft", "delete", "table", "inet", "sluice-slt-tunnel")
            if reversePathFilter == 0 || ends.0.contains(":") {
                #expect(try !connects(from: ends.0, to: ends.1, in: far))
                // The answer went into the tunnel.
                #expect(
                    try headers(tun).contains {
                        $0.source == address(ends.1) && $0.destination == address(ends.0) && $0.protocolNumber == .tcp
                    })
            }
            _ = listener.rawValue
        }
    }

    @Test func aConnectionFromASplitTunnelsNetworkIsAnsweredByTheLinkWhenAsked() throws {
        for isAsked in [true, false] {
            let options = RoutingOptions(keepsMarkedTrafficOut: isAsked)
            try withNetwork(included: ["198.51.100.0/24", "2001:db8:7::/48"], options) { tun, _, far in
                for (source, destination) in [("198.51.100.7", "10.6.0.1"), ("2001:db8:7::7", "fd00:6::1")] {
                    let listener = try makeListener(address(destination), port: 7_777)
                    #expect(try connects(from: source, to: destination, in: far) == isAsked)
                    _ = listener.rawValue
                    // The machine's own packets to there take the tunnel in either case.
                    #expect(!isAnswered(source))
                    #expect(try destinations(tun).contains(source))
                }
            }
        }
    }

    @Test func strangersOnTheLinkCannotTalkToTheTunnelsAddress() throws {
        try withNetwork { _, _, far in
            let listener = try makeListener(address("10.8.0.2"), port: 7_778)
            try inNetworkNamespace(far) { try run("ip", "route", "add", "10.8.0.2", "via", "10.6.0.1") }
            #expect(try !connects(from: "198.51.100.7", to: "10.8.0.2", in: far, port: 7_778))
            try run("nft", "flush", "chain", "inet", "sluice-slt-tunnel", "preraw")
            #expect(try connects(from: "198.51.100.7", to: "10.8.0.2", in: far, port: 7_778))
            _ = listener.rawValue
        }
    }
}

/// A TCP socket that listens in the calling thread's namespace.
private func makeListener(_ address: IPAddress, port: UInt16) throws -> FileDescriptor {
    let descriptor = try boundSocket(address, port: port)
    _ = try systemCall("listen") { listen(descriptor.rawValue, 4) }
    return descriptor
}

/// True when a TCP connection from the far side comes about within half a second.
private func connects(
    from source: String, to destination: String, in far: borrowing FileDescriptor, port: UInt16 = 7_777
) throws -> Bool {
    try inNetworkNamespace(far) {
        let descriptor = try boundSocket(address(source), port: 0)
        try descriptor.setNonBlocking()
        let number = descriptor.rawValue
        let result = unsafe withKernelAddress(address(destination), port: port) { unsafe connect(number, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else { throw SystemCallError("connect", errno: errno) }
        var entry = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
        let count = unsafe poll(&entry, 1, 500)
        return count == 1 && Int32(entry.revents) & (POLLERR | POLLHUP) == 0
    }
}

private func boundSocket(_ address: IPAddress, port: UInt16) throws -> FileDescriptor {
    let family = AddressFamily(of: address).socketFamily
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let descriptor = FileDescriptor(adopting: try systemCall("socket") { socket(family, type, 0) })
    let number = descriptor.rawValue
    _ = try systemCall("bind") { unsafe withKernelAddress(address, port: port) { unsafe bind(number, $0, $1) } }
    return descriptor
}

private func withKernelAddress<Result>(
    _ address: IPAddress, port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
    var bytes = [UInt8](repeating: 0, count: SocketAddress.capacity)
    var span = bytes.mutableSpan
    var octets = span.mutableOctets
    let length = SocketAddress.write(Endpoint(address: address, port: port), to: &octets)
    return unsafe bytes.withUnsafeBytes { bytes in
        // The array is as long as any address.
        unsafe bytes.withMemoryRebound(to: sockaddr.self) { pointer in
            guard let base = pointer.baseAddress else { preconditionFailure("an array without memory") }
            return unsafe body(base, socklen_t(length))
        }
    }
}
