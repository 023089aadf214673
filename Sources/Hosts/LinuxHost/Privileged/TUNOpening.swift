internal import CLinux
internal import Glibc
internal import IPPacket

extension PrivilegedService {
    /// Creates a TUN device and sets its MTU and whatever else is asked for.
    mutating func openTUN(
        _ name: InterfaceName, maximumTransmissionUnit: Int, _ options: TUNOptions
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        guard (1...TUNOptions.maximumQueues).contains(options.queues) else {
            throw .systemCall(SystemCallError("ioctl(TUNSETIFF)", errno: EINVAL))
        }
        // Whole packets, without the four bytes of packet information.
        var flags = IFF_TUN | IFF_NO_PI
        if options.wantsOffloads { flags |= IFF_VNET_HDR }
        let descriptors = try openQueues(of: name, flags: flags, count: options.queues)
        guard let number = descriptors.firstNumber else { throw .unexpectedReply }

        let control = FileDescriptor(
            adopting: try privilegedCall("socket") {
                socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            })
        let controlNumber = control.rawValue
        _ = try privilegedCall("ioctl(SIOCSIFMTU)") {
            unsafe clinux_interface_set_mtu(
                controlNumber, name.string, Int32(clamping: maximumTransmissionUnit))
        }
        if let length = options.transmitQueueLength {
            _ = try privilegedCall("ioctl(SIOCSIFTXQLEN)") {
                unsafe clinux_interface_set_transmit_queue_length(controlNumber, name.string, Int32(clamping: length))
            }
        }
        var headerLength = 0
        if options.wantsOffloads {
            headerLength = VirtioNetworkHeader.byteCount
            _ = try privilegedCall("ioctl(TUNSETVNETHDRSZ)") {
                clinux_tun_set_header_size(number, Int32(VirtioNetworkHeader.byteCount))
            }
        }
        let offloads = enableOffloads(options.wantsOffloads, of: number, named: name)
        return try keep(descriptors, first: number, name: name, headerLength: headerLength, offloads: offloads)
    }

    /// Takes over an inherited descriptor, if it is that of a TUN device. When it has virtio headers, offloads are set as
    /// wanted.
    mutating func adoptTUN(_ number: Int32, wantsOffloads: Bool) throws(PrivilegedFailure) -> PrivilegedExchange {
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
        // Whether there is packet information cannot be asked: the bit of IFF_NO_PI means IFF_NOFILTER in the answer.
        guard isDevice, Int32(flags) & Int32(IFF_TUN | IFF_TAP) == Int32(IFF_TUN), let name = try? InterfaceName(string)
        else { throw .unsuitableDescriptor }
        var headerLength = 0
        if Int32(flags) & IFF_VNET_HDR != 0 {
            headerLength = Int(clinux_tun_get_header_size(number))
            guard headerLength == 10 || headerLength == 12 else { throw .unsuitableDescriptor }
        }
        let descriptor = FileDescriptor(adopting: number)
        do throws(SystemCallError) {
            try descriptor.setNonBlocking()
            try descriptor.setCloseOnExec()
        } catch { throw .systemCall(error) }
        var descriptors = DescriptorList()
        descriptors.append(descriptor)
        let offloads =
            headerLength > 0 ? enableOffloads(wantsOffloads, of: number, named: name) : TUNOffloads.none
        return try keep(descriptors, first: number, name: name, headerLength: headerLength, offloads: offloads)
    }

    /// Opens as many queues. A persistent device that was made for one queue refuses more, and has that one.
    private func openQueues(
        of name: InterfaceName, flags: Int32, count: Int
    ) throws(PrivilegedFailure) -> DescriptorList {
        var descriptors = DescriptorList()
        guard count > 1 else {
            descriptors.append(try openQueue(of: name, flags: flags))
            return descriptors
        }
        do {
            descriptors.append(try openQueue(of: name, flags: flags | IFF_MULTI_QUEUE))
        } catch .systemCall(let error) where error.errno == EINVAL {
            descriptors.append(try openQueue(of: name, flags: flags))
            return descriptors
        }
        while descriptors.count < count {
            descriptors.append(try openQueue(of: name, flags: flags | IFF_MULTI_QUEUE))
        }
        return descriptors
    }

    private func openQueue(of name: InterfaceName, flags: Int32) throws(PrivilegedFailure) -> FileDescriptor {
        let descriptor = FileDescriptor(
            adopting: try privilegedCall("open(/dev/net/tun)") {
                unsafe open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK)
            })
        let number = descriptor.rawValue
        _ = try privilegedCall("ioctl(TUNSETIFF)") {
            unsafe clinux_tun_set_interface(number, name.string, Int16(truncatingIfNeeded: flags))
        }
        return descriptor
    }

    /// Asks for as much as the kernel knows, and limits super-packets to what can be sent on in one call. Without the limits
    /// super-packets are larger, which costs a call more, so that it is no failure when the kernel refuses them.
    private func enableOffloads(_ areWanted: Bool, of number: Int32, named name: InterfaceName) -> TUNOffloads {
        let attempts = areWanted ? TUNOffloads.attempts : [.none]
        guard let granted = attempts.first(where: { clinux_tun_set_offloads(number, $0.bits) == 0 }) else {
            return .none
        }
        if granted != .none { try? limitSuperPackets(of: name) }
        return granted
    }

    /// Remembers a device and replies with it.
    private mutating func keep(
        _ descriptors: consuming DescriptorList, first number: Int32, name: InterfaceName, headerLength: Int,
        offloads: TUNOffloads
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        let identifier = DeviceIdentifier(rawValue: makeIdentifier())
        let duplicate = FileDescriptor(
            adopting: try privilegedCall("fcntl(F_DUPFD_CLOEXEC)") { fcntl(number, F_DUPFD_CLOEXEC, 0) })
        devices[identifier] = OwnedDescriptor(duplicate)
        return PrivilegedExchange(
            .device(identifier, name: name, headerLength: headerLength, offloads: offloads), descriptors)
    }
}
