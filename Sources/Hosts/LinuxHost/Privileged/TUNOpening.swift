internal import CLinux
internal import Glibc

extension PrivilegedService {
    /// Creates a TUN device and sets its MTU.
    mutating func openTUN(
        _ name: InterfaceName, maximumTransmissionUnit: Int
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        let descriptor = FileDescriptor(
            adopting: try privilegedCall("open(/dev/net/tun)") {
                unsafe open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK)
            })
        let number = descriptor.rawValue
        // Whole packets, without the four bytes of packet information.
        let flags = Int16(truncatingIfNeeded: IFF_TUN | IFF_NO_PI)
        _ = try privilegedCall("ioctl(TUNSETIFF)") { unsafe clinux_tun_set_interface(number, name.string, flags) }
        let control = FileDescriptor(
            adopting: try privilegedCall("socket") {
                socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            })
        let controlNumber = control.rawValue
        _ = try privilegedCall("ioctl(SIOCSIFMTU)") {
            unsafe clinux_interface_set_mtu(
                controlNumber, name.string, Int32(clamping: maximumTransmissionUnit))
        }
        return try keep(descriptor, name: name)
    }

    /// Takes over an inherited descriptor, if it is that of a TUN device without a virtio header.
    mutating func adoptTUN(_ number: Int32) throws(PrivilegedFailure) -> PrivilegedExchange {
        var flags: Int16 = 0
        var isDevice = false
        // IFNAMSIZ bytes, which the function fills up to a terminator.
        let string = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(IFNAMSIZ)) { bytes -> String in
            guard let base = bytes.baseAddress, unsafe clinux_tun_get_interface(number, base, &flags) == 0 else {
                return ""
            }
            isDevice = true
            return unsafe String(cString: base)
        }
        // IFF_VNET_HDR would put a header before every packet that nobody expects yet. Whether there is packet
        // information cannot be asked: the bit of IFF_NO_PI means IFF_NOFILTER in the answer.
        guard isDevice, Int32(flags) & Int32(IFF_TUN | IFF_TAP | IFF_VNET_HDR) == Int32(IFF_TUN),
            let name = try? InterfaceName(string)
        else { throw .unsuitableDescriptor }
        let descriptor = FileDescriptor(adopting: number)
        do throws(SystemCallError) {
            try descriptor.setNonBlocking()
            try descriptor.setCloseOnExec()
        } catch { throw .systemCall(error) }
        return try keep(descriptor, name: name)
    }

    /// Remembers a device and replies with it.
    private mutating func keep(
        _ descriptor: consuming FileDescriptor, name: InterfaceName
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        let identifier = DeviceIdentifier(rawValue: makeIdentifier())
        do throws(SystemCallError) {
            devices[identifier] = OwnedDescriptor(try descriptor.duplicate())
        } catch { throw .systemCall(error) }
        var descriptors = DescriptorList()
        descriptors.append(descriptor)
        return PrivilegedExchange(.device(identifier, name: name), descriptors)
    }
}
