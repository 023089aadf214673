internal import CLinux
internal import CNetlink
internal import Glibc

extension PrivilegedService {
    /// Opens netlink sockets in the namespace of a device, or in the calling thread's own.
    func openNetlink(namespaceOf device: DeviceIdentifier?) throws(PrivilegedFailure) -> PrivilegedExchange {
        guard let device else {
            return PrivilegedExchange(.netlink(isHome: true), try netlinkSockets())
        }
        guard let owned = devices[device] else { throw .unknownIdentifier }
        let home = try openOwnNamespace()
        let there = try openNamespace(of: owned)
        if try fileIdentity(of: home) == fileIdentity(of: there) {
            return PrivilegedExchange(.netlink(isHome: true), try netlinkSockets())
        }
        // A socket belongs to the namespace that its maker was in. Only this thread goes there, and it comes back
        // before anything else runs on it.
        _ = try privilegedCall("setns") { clinux_setns_net(there.rawValue) }
        let sockets: DescriptorList
        do throws(PrivilegedFailure) {
            sockets = try netlinkSockets()
        } catch {
            comeBack(to: home)
            throw error
        }
        comeBack(to: home)
        try giveNumber(to: there)
        return PrivilegedExchange(.netlink(isHome: false), sockets)
    }

    /// Opens netlink for the changes of links in all namespaces that have a number here.
    func openLinkNotices() throws(PrivilegedFailure) -> PrivilegedExchange {
        var descriptors = DescriptorList()
        let changes = try netlinkSocket(groups: UInt32(RTMGRP_LINK))
        let number = changes.rawValue
        var enable: Int32 = 1
        _ = try privilegedCall("setsockopt(NETLINK_LISTEN_ALL_NSID)") {
            // The pointer lives for the call, and the size is the integer's.
            unsafe setsockopt(
                number, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, &enable, socklen_t(MemoryLayout<Int32>.size))
        }
        descriptors.append(changes)
        descriptors.append(try netlinkSocket(groups: 0))
        return PrivilegedExchange(.netlink(isHome: true), descriptors)
    }

    /// Lets the own namespace have a number for another one, so that notices from there can be heard here. A number keeps
    /// nothing in being.
    private func giveNumber(to namespace: borrowing FileDescriptor) throws(PrivilegedFailure) {
        do throws(NetlinkError) {
            let socket = try NetlinkSocket(adopting: try netlinkQuestionSocket())
            _ = try unsafe socket.send(NetlinkMessage.namespaceNumberRequest(for: namespace.rawValue))
            // The kernel answers while it takes the request. That there is a number already is as good.
            _ = try unsafe socket.receive { _ in }
        } catch {
            throw .unexpectedReply
        }
    }

    /// A socket for questions, which fails as netlink fails.
    func netlinkQuestionSocket() throws(NetlinkError) -> FileDescriptor {
        do {
            return try netlinkSocket(groups: 0)
        } catch .systemCall(let error) {
            throw .refused(errno: error.errno)
        } catch {
            throw .malformedAnswer
        }
    }

    /// True when a device is in the calling thread's own namespace.
    func isAtHome(_ device: OwnedDescriptor) throws(PrivilegedFailure) -> Bool {
        let home = try openOwnNamespace()
        let there = try openNamespace(of: device)
        return try fileIdentity(of: home) == fileIdentity(of: there)
    }

    private func openNamespace(of device: OwnedDescriptor) throws(PrivilegedFailure) -> FileDescriptor {
        FileDescriptor(
            adopting: try privilegedCall("ioctl(TUNGETDEVNETNS)") {
                clinux_tun_get_namespace(device.descriptor.rawValue)
            })
    }

    private func comeBack(to home: borrowing FileDescriptor) {
        // Staying in a foreign namespace would send the tunnel's traffic into the wrong network. It needs the privilege
        // that the way there needed, so it does not fail.
        let result = clinux_setns_net(home.rawValue)
        precondition(result == 0, "the way back to the own network namespace is closed")
    }

    private func openOwnNamespace() throws(PrivilegedFailure) -> FileDescriptor {
        FileDescriptor(
            adopting: try privilegedCall("open(/proc/thread-self/ns/net)") {
                unsafe open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
            })
    }

    /// What tells whether two descriptors mean the same namespace.
    private func fileIdentity(of descriptor: borrowing FileDescriptor) throws(PrivilegedFailure) -> FileIdentity {
        var status = stat()
        let number = descriptor.rawValue
        // The pointer lives for the call.
        _ = try privilegedCall("fstat") { unsafe fstat(number, &status) }
        return FileIdentity(device: status.st_dev, node: status.st_ino)
    }

    /// One socket that hears of changes and one for questions.
    private func netlinkSockets() throws(PrivilegedFailure) -> DescriptorList {
        let groups =
            UInt32(RTMGRP_LINK) | UInt32(RTMGRP_IPV4_IFADDR) | UInt32(RTMGRP_IPV6_IFADDR)
            | UInt32(RTMGRP_IPV4_ROUTE) | UInt32(RTMGRP_IPV6_ROUTE) | UInt32(RTMGRP_IPV4_RULE)
            | 1 << (RTNLGRP_IPV6_RULE.rawValue - 1)
        var descriptors = DescriptorList()
        descriptors.append(try netlinkSocket(groups: groups))
        descriptors.append(try netlinkSocket(groups: 0))
        return descriptors
    }

    private func netlinkSocket(groups: UInt32) throws(PrivilegedFailure) -> FileDescriptor {
        let type = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = FileDescriptor(
            adopting: try privilegedCall("socket(AF_NETLINK)") { socket(AF_NETLINK, type, NETLINK_ROUTE) })
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = groups
        let number = descriptor.rawValue
        _ = try privilegedCall("bind(AF_NETLINK)") {
            unsafe withSocketAddress(&address) { unsafe bind(number, $0, $1) }
        }
        return descriptor
    }
}

/// Tells files apart: the device that they are on, and their number there.
struct FileIdentity: Equatable {
    var device: dev_t
    var node: ino_t
}
