import ByteAccess
import CLinux
import IPPacket
import WireGuard

@testable import LinuxHost

/// An address from its text.
func address(_ text: String) -> IPAddress {
    do { return try IPAddress(parsing: text) } catch { preconditionFailure("a test names an impossible address") }
}

/// An interface name that is known to be good.
func interfaceName(_ text: String) -> InterfaceName {
    do { return try InterfaceName(text) } catch { preconditionFailure("a test names an impossible interface") }
}

/// The index of an interface in the calling thread's namespace; 0 when there is none.
func interfaceIndex(_ name: String) -> UInt32 {
    unsafe if_nametoindex(name)
}

extension TUNDevice {
    /// The next packet as an array, waited for.
    func nextPacket() throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: TUNDevice.maximumPacketLength)
        while true {
            var span = buffer.mutableSpan
            var bytes = span.mutableOctets
            if let count = try read(into: &bytes) { return Array(buffer[..<count]) }
            try awaitReady(descriptor.rawValue, "a packet from the TUN")
        }
    }
}
