internal import CNetlink
internal import Glibc
internal import IPPacket

/// Builds and reads rtnetlink messages: a header of fixed layout, then attributes that libnl finds and bounds.
///
/// Each reading function is handed a complete message: all of `nlmsg_len` bytes can be read.
enum NetlinkMessage {
    /// Asks for a number for the network namespace that a descriptor stands for; any number.
    static func namespaceNumberRequest(for descriptor: Int32) throws(NetlinkError) -> OpaquePointer {
        let flags = Int32(NLM_F_REQUEST | NLM_F_ACK)
        guard let message = unsafe nlmsg_alloc_simple(Int32(RTM_NEWNSID), flags) else { throw .library(NLE_NOMEM) }
        var header = rtgenmsg()
        // The pointer lives for the call, which copies the structure. Without memory the message is given back.
        guard unsafe nlmsg_append(message, &header, MemoryLayout<rtgenmsg>.size, Int32(NLMSG_ALIGNTO)) == 0,
            unsafe nla_put_u32(message, Int32(NETNSA_FD), UInt32(bitPattern: descriptor)) == 0,
            unsafe nla_put_u32(message, Int32(NETNSA_NSID), UInt32.max) == 0
        else {
            unsafe nlmsg_free(message)
            throw .library(NLE_NOMEM)
        }
        return unsafe message
    }

    /// Asks for limits on the super-packets that the stack hands to a link: bytes, and segments.
    static func superPacketLimitRequest(
        index: UInt32, size: UInt32, segments: UInt32
    ) throws(NetlinkError) -> OpaquePointer {
        // Since Linux 6.3 IPv4 has a limit of its own. IFLA_GSO_IPV4_MAX_SIZE is missing in older headers; older kernels skip
        // what they do not know.
        let ipv4Size: Int32 = 63
        let flags = Int32(NLM_F_REQUEST | NLM_F_ACK)
        guard let message = unsafe nlmsg_alloc_simple(Int32(RTM_NEWLINK), flags) else { throw .library(NLE_NOMEM) }
        var header = ifinfomsg()
        header.ifi_family = UInt8(AF_UNSPEC)
        header.ifi_index = Int32(bitPattern: index)
        // The pointer lives for the call, which copies the structure. Without memory the message is given back.
        guard unsafe nlmsg_append(message, &header, MemoryLayout<ifinfomsg>.size, Int32(NLMSG_ALIGNTO)) == 0,
            unsafe nla_put_u32(message, Int32(IFLA_GSO_MAX_SIZE), size) == 0,
            unsafe nla_put_u32(message, Int32(IFLA_GSO_MAX_SEGS), segments) == 0,
            unsafe nla_put_u32(message, ipv4Size, size) == 0
        else {
            unsafe nlmsg_free(message)
            throw .library(NLE_NOMEM)
        }
        return unsafe message
    }

    /// What a notification says; nil when it concerns nothing of ours.
    static func change(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkChange? {
        let type = unsafe Int(message.pointee.nlmsg_type)
        switch type {
        case RTM_NEWLINK, RTM_DELLINK:
            guard let header = unsafe header(of: message, as: ifinfomsg.self) else { return nil }
            // Bridges tell of their ports as links of their own family: a port that leaves a bridge is still there.
            guard header.ifi_family == UInt8(AF_UNSPEC) else { return nil }
            let index = UInt32(bitPattern: header.ifi_index)
            if type == RTM_DELLINK { return .linkRemoved(index: index) }
            return unsafe .linkChanged(link(message, header))
        case RTM_NEWADDR, RTM_DELADDR:
            guard let header = unsafe header(of: message, as: ifaddrmsg.self) else { return nil }
            let size = MemoryLayout<ifaddrmsg>.size
            // On a point-to-point link IFA_ADDRESS is the other end.
            let local = unsafe nlmsg_find_attr(message, Int32(size), Int32(IFA_LOCAL))
            let attribute = unsafe local ?? nlmsg_find_attr(message, Int32(size), Int32(IFA_ADDRESS))
            guard let address = unsafe address(attribute, family: Int32(header.ifa_family)) else { return nil }
            return type == RTM_NEWADDR
                ? .addressAdded(address, interfaceIndex: header.ifa_index)
                : .addressRemoved(address, interfaceIndex: header.ifa_index)
        case RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWRULE, RTM_DELRULE:
            // A rule's header has the family in the same place.
            guard let header = unsafe header(of: message, as: rtmsg.self) else { return nil }
            switch Int32(header.rtm_family) {
            case AF_INET: return .routesChanged(.v4)
            case AF_INET6: return .routesChanged(.v6)
            default: return nil
            }
        default: return nil
        }
    }

    /// The error number of an error message, 0 for an acknowledgement; nil for any other message.
    static func error(_ message: UnsafeMutablePointer<nlmsghdr>) -> Int32? {
        guard unsafe Int32(message.pointee.nlmsg_type) == NLMSG_ERROR else { return nil }
        guard let error = unsafe header(of: message, as: Int32.self) else { return EPROTO }
        return -error
    }

    /// The route that a message describes; nil when it is none or has no interface.
    static func route(_ message: UnsafeMutablePointer<nlmsghdr>) -> Route? {
        guard unsafe Int(message.pointee.nlmsg_type) == RTM_NEWROUTE,
            let header = unsafe header(of: message, as: rtmsg.self)
        else { return nil }
        let size = Int32(MemoryLayout<rtmsg>.size)
        guard let interface = unsafe integer(nlmsg_find_attr(message, size, Int32(RTA_OIF.rawValue))) else {
            return nil
        }
        var route = Route(interfaceIndex: interface)
        route.preferredSource = unsafe address(
            nlmsg_find_attr(message, size, Int32(RTA_PREFSRC.rawValue)), family: Int32(header.rtm_family))
        unsafe route.maximumTransmissionUnit = routeMTU(message)
        return route
    }

    /// The MTU in bytes that a route has of its own; nil when it has none.
    static func routeMTU(_ message: UnsafeMutablePointer<nlmsghdr>) -> Int? {
        let size = Int32(MemoryLayout<rtmsg>.size)
        guard let metrics = unsafe nlmsg_find_attr(message, size, Int32(RTA_METRICS.rawValue)) else { return nil }
        // The metrics are attributes within an attribute; libnl keeps within its length.
        let found = unsafe nla_find(
            nla_data(metrics).assumingMemoryBound(to: nlattr.self), nla_len(metrics), Int32(RTAX_MTU))
        return unsafe integer(found).map(Int.init)
    }

    /// A question for an interface, by index or by name; nil without memory. Whoever gets it sends it.
    static func linkQuestion(index: UInt32, name: String?) -> OpaquePointer? {
        guard let message = unsafe nlmsg_alloc_simple(Int32(RTM_GETLINK), 0) else { return nil }
        var header = ifinfomsg()
        header.ifi_family = UInt8(AF_UNSPEC)
        header.ifi_index = Int32(bitPattern: index)
        // libnl copies what it is given; the pointers live for each call.
        var result = unsafe nlmsg_append(message, &header, MemoryLayout<ifinfomsg>.size, Int32(NLMSG_ALIGNTO))
        if let name, result == 0 { result = unsafe nla_put_string(message, Int32(IFLA_IFNAME), name) }
        return unsafe finish(message, result)
    }

    /// A question for the route to a destination; nil without memory. Whoever gets it sends it.
    static func routeQuestion(
        to destination: IPAddress, from source: IPAddress?, mark: UInt32, interface: UInt32
    ) -> OpaquePointer? {
        guard let message = unsafe nlmsg_alloc_simple(Int32(RTM_GETROUTE), 0) else { return nil }
        var header = rtmsg()
        header.rtm_family = UInt8(AddressFamily(of: destination).socketFamily)
        header.rtm_dst_len = bitWidth(of: destination)
        if let source { header.rtm_src_len = bitWidth(of: source) }
        // libnl copies what it is given; the pointers live for each call.
        var result = unsafe nlmsg_append(message, &header, MemoryLayout<rtmsg>.size, Int32(NLMSG_ALIGNTO))
        if result == 0 { result = unsafe put(destination, as: RTA_DST, into: message) }
        if let source, result == 0 { result = unsafe put(source, as: RTA_SRC, into: message) }
        if interface != 0, result == 0 { result = unsafe nla_put_u32(message, Int32(RTA_OIF.rawValue), interface) }
        if mark != 0, result == 0 { result = unsafe nla_put_u32(message, Int32(RTA_MARK.rawValue), mark) }
        return unsafe finish(message, result)
    }

    /// A message whose parts were added with this result; given back, and nil, when there was no memory.
    static func finish(_ message: OpaquePointer, _ result: Int32) -> OpaquePointer? {
        if result == 0 { return unsafe message }
        unsafe nlmsg_free(message)
        return nil
    }
}

extension NetlinkMessage {
    /// A copy of the fixed header after nlmsghdr; nil when the message is too short for it.
    static func header<Header: BitwiseCopyable>(
        of message: UnsafeMutablePointer<nlmsghdr>, as type: Header.Type
    ) -> Header? {
        guard unsafe nlmsg_valid_hdr(message, Int32(MemoryLayout<Header>.size)) != 0 else { return nil }
        return unsafe nlmsg_data(message).loadUnaligned(as: type)
    }

    private static func link(_ message: UnsafeMutablePointer<nlmsghdr>, _ header: ifinfomsg) -> Link {
        let size = Int32(MemoryLayout<ifinfomsg>.size)
        let mtu = unsafe integer(nlmsg_find_attr(message, size, Int32(IFLA_MTU)))
        return Link(
            index: UInt32(bitPattern: header.ifi_index),
            name: unsafe string(nlmsg_find_attr(message, size, Int32(IFLA_IFNAME))),
            maximumTransmissionUnit: mtu.map(Int.init) ?? 0,
            isUp: header.ifi_flags & UInt32(IFF_UP) != 0,
            hasPacketInformation: unsafe hasPacketInformation(
                nlmsg_find_attr(message, size, Int32(IFLA_LINKINFO))))
    }

    /// Looks into what a TUN device tells about itself.
    private static func hasPacketInformation(_ linkInformation: UnsafeMutablePointer<nlattr>?) -> Bool {
        guard let linkInformation = unsafe linkInformation,
            let data = unsafe nla_find(
                nla_data(linkInformation).assumingMemoryBound(to: nlattr.self), nla_len(linkInformation),
                Int32(IFLA_INFO_DATA)),
            let kind = unsafe nla_find(
                nla_data(linkInformation).assumingMemoryBound(to: nlattr.self), nla_len(linkInformation),
                Int32(IFLA_INFO_KIND)),
            unsafe string(kind) == "tun",
            let flag = unsafe nla_find(
                nla_data(data).assumingMemoryBound(to: nlattr.self), nla_len(data), Int32(IFLA_TUN_PI))
        else { return false }
        // libnl found each attribute within the one around it.
        return unsafe nla_len(flag) == 1 && nla_data(flag).load(as: UInt8.self) != 0
    }

    /// The value of an attribute with a 32-bit number in host byte order; nil for anything else.
    static func integer(_ attribute: UnsafeMutablePointer<nlattr>?) -> UInt32? {
        guard let attribute = unsafe attribute, unsafe nla_len(attribute) == 4 else { return nil }
        return unsafe nla_data(attribute).loadUnaligned(as: UInt32.self)
    }

    /// The text of an attribute up to its terminator; empty for nil.
    static func string(_ attribute: UnsafeMutablePointer<nlattr>?) -> String {
        guard let attribute = unsafe attribute else { return "" }
        let bytes = unsafe UnsafeRawBufferPointer(start: nla_data(attribute), count: Int(nla_len(attribute)))
        return unsafe String(decoding: bytes.prefix(while: { $0 != 0 }), as: UTF8.self)
    }

    /// The address in an attribute; nil when its length is not the family's.
    static func address(_ attribute: UnsafeMutablePointer<nlattr>?, family: Int32) -> IPAddress? {
        guard let attribute = unsafe attribute, let data = unsafe nla_data(attribute) else { return nil }
        // The length is checked before each load; every bit pattern is a valid integer.
        switch (family, unsafe nla_len(attribute)) {
        case (AF_INET, 4):
            return .v4(IPv4Address(bits: UInt32(bigEndian: unsafe data.loadUnaligned(as: UInt32.self))))
        case (AF_INET6, 16):
            return unsafe .v6(
                IPv6Address(
                    high: UInt64(bigEndian: data.loadUnaligned(as: UInt64.self)),
                    low: UInt64(bigEndian: data.loadUnaligned(fromByteOffset: 8, as: UInt64.self))))
        default: return nil
        }
    }

    /// Adds an attribute with an address; negative without memory.
    static func put(_ address: IPAddress, as type: rtattr_type_t, into message: OpaquePointer) -> Int32 {
        let type = Int32(type.rawValue)
        // libnl copies what it is given; the pointers live for each call.
        switch address {
        case .v4(let address):
            var bits = address.bits.bigEndian
            return unsafe nla_put(message, type, 4, &bits)
        case .v6(let address):
            var halves = (address.high.bigEndian, address.low.bigEndian)
            return unsafe nla_put(message, type, 16, &halves)
        }
    }

    private static func bitWidth(of address: IPAddress) -> UInt8 {
        switch address {
        case .v4: 32
        case .v6: 128
        }
    }
}
