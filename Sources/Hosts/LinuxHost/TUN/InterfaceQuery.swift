internal import CLinux
internal import Glibc

/// Asks about the interfaces of one network namespace, by name.
struct InterfaceQuery: ~Copyable {
    private let socket: FileDescriptor

    /// A query in the calling thread's namespace; it stays there.
    init() throws(SystemCallError) {
        socket = FileDescriptor(
            adopting: try systemCall("socket") {
                Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            })
    }

    /// The maximum transmission unit of an interface in bytes. `ENODEV` when the namespace has no interface of that
    /// name.
    func maximumTransmissionUnit(of name: InterfaceName) throws(SystemCallError) -> Int {
        let number = socket.rawValue
        return Int(try systemCall("ioctl(SIOCGIFMTU)") { unsafe clinux_interface_get_mtu(number, name.string) })
    }

    /// True when an interface is administratively up. `ENODEV` when the namespace has none of that name.
    func isUp(_ name: InterfaceName) throws(SystemCallError) -> Bool {
        let number = socket.rawValue
        let flags = try systemCall("ioctl(SIOCGIFFLAGS)") { unsafe clinux_interface_get_flags(number, name.string) }
        return flags & Int32(IFF_UP) != 0
    }
}
