internal import CNetlink
internal import Glibc
internal import IPPacket
internal import Provider

/// Builds the requests that change links, addresses, routes and rules, and those that list them. Whoever gets a message sends it.
enum NetlinkRequest {
    private static let addFlags = Int32(NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)
    private static let removeFlags = Int32(NLM_F_REQUEST | NLM_F_ACK)

    /// Gives an address to an interface, refused with `EEXIST` when it has it; or takes it away.
    static func address(
        _ address: InterfaceAddress, of index: UInt32, isAdded: Bool
    ) throws(NetlinkError) -> OpaquePointer {
        // Each object is allocated here and given back here; what takes another one counts its own reference.
        guard let object = unsafe rtnl_addr_alloc() else { throw .library(NLE_NOMEM) }
        defer { unsafe rtnl_addr_put(object) }
        let local = try unsafe abstractAddress(address.address, length: address.prefixLength)
        defer { unsafe nl_addr_put(local) }
        unsafe rtnl_addr_set_ifindex(object, Int32(bitPattern: index))
        var message: OpaquePointer?
        var result = unsafe rtnl_addr_set_local(object, local)
        if result >= 0 {
            result =
                unsafe isAdded
                ? rtnl_addr_build_add_request(object, addFlags, &message)
                : rtnl_addr_build_delete_request(object, removeFlags, &message)
        }
        guard result >= 0, let message = unsafe message else { throw .library(abs(result)) }
        return unsafe message
    }

    /// Adds a route, refused with `EEXIST` when the table has one to the same destinations; or takes away exactly that route. A
    /// route of kind `device` leads out of the interface with this index.
    static func route(_ route: RouteEntry, through index: UInt32, isAdded: Bool) throws(NetlinkError) -> OpaquePointer {
        let destination = route.destination.value
        guard let object = unsafe rtnl_route_alloc() else { throw .library(NLE_NOMEM) }
        defer { unsafe rtnl_route_put(object) }
        let address = try unsafe abstractAddress(destination.address, length: destination.length)
        defer { unsafe nl_addr_put(address) }
        unsafe rtnl_route_set_table(object, route.table)
        unsafe rtnl_route_set_protocol(object, RouteEntry.protocolNumber)
        // As ip(8) has it; libnl would take a throw route for one of a link.
        unsafe rtnl_route_set_scope(object, UInt8(route.scope))
        var result = unsafe rtnl_route_set_dst(object, address)
        if result >= 0 {
            let type = route.kind == .throw ? RTN_THROW : RTN_UNICAST
            result = unsafe rtnl_route_set_type(object, UInt8(type))
        }
        if result >= 0, route.kind == .device {
            guard let hop = unsafe rtnl_route_nh_alloc() else { throw .library(NLE_NOMEM) }
            unsafe rtnl_route_nh_set_ifindex(hop, Int32(bitPattern: index))
            // The route owns the hop from here on.
            unsafe rtnl_route_add_nexthop(object, hop)
        }
        var message: OpaquePointer?
        if result >= 0 {
            result =
                unsafe isAdded
                ? rtnl_route_build_add_request(object, addFlags, &message)
                : rtnl_route_build_del_request(object, removeFlags, &message)
        }
        guard result >= 0, let message = unsafe message else { throw .library(abs(result)) }
        return unsafe message
    }

    /// Adds a rule, refused with `EEXIST` when there is an equal one; or takes away exactly that rule. libnl 3.7 knows neither
    /// suppressed prefix lengths nor ports nor the inversion, so the message is put together here.
    static func rule(_ rule: RuleEntry, isAdded: Bool) -> OpaquePointer? {
        let type = isAdded ? RTM_NEWRULE : RTM_DELRULE
        guard let message = unsafe nlmsg_alloc_simple(Int32(type), isAdded ? addFlags : removeFlags) else { return nil }
        var header = fib_rule_hdr()
        header.family = UInt8(rule.family.socketFamily)
        header.action = UInt8(FR_ACT_TO_TBL)
        if rule.isInverted { header.flags = UInt32(FIB_RULE_INVERT) }
        if let destination = rule.destination { header.dst_len = destination.value.length }
        // libnl copies what it is given; the pointers live for each call.
        var result = unsafe nlmsg_append(message, &header, MemoryLayout<fib_rule_hdr>.size, Int32(NLMSG_ALIGNTO))
        func put(_ type: Int, _ value: UInt32?) {
            if let value, result == 0 { result = unsafe nla_put_u32(message, Int32(type), value) }
        }
        put(FRA_PRIORITY, rule.priority)
        put(FRA_TABLE, rule.table)
        put(FRA_FWMARK, rule.mark)
        put(FRA_FWMASK, rule.mark == nil ? nil : .max)
        put(FRA_SUPPRESS_PREFIXLEN, rule.suppressedPrefixLength.map(UInt32.init))
        if let destination = rule.destination, result == 0 {
            result = unsafe NetlinkMessage.put(
                destination.value.address, as: rtattr_type_t(UInt32(FRA_DST)), into: message)
        }
        if let service = rule.service, result == 0 {
            result = unsafe nla_put_u8(message, Int32(FRA_IP_PROTO), service.transport.rawValue)
            var range = fib_rule_port_range(start: service.port, end: service.port)
            if result == 0 {
                result = unsafe nla_put(
                    message, Int32(FRA_DPORT_RANGE), Int32(MemoryLayout<fib_rule_port_range>.size), &range)
            }
        }
        if result == 0 { result = unsafe nla_put_u8(message, Int32(FRA_PROTOCOL), RouteEntry.protocolNumber) }
        return unsafe NetlinkMessage.finish(message, result)
    }

    /// Changes a link's MTU in bytes, and whether it is up; nil for what stays.
    static func link(at index: UInt32, maximumTransmissionUnit: Int?, isUp: Bool?) -> OpaquePointer? {
        guard let message = unsafe nlmsg_alloc_simple(Int32(RTM_NEWLINK), removeFlags) else { return nil }
        var header = ifinfomsg()
        header.ifi_family = UInt8(AF_UNSPEC)
        header.ifi_index = Int32(bitPattern: index)
        if let isUp {
            header.ifi_change = UInt32(IFF_UP)
            header.ifi_flags = isUp ? UInt32(IFF_UP) : 0
        }
        // libnl copies what it is given; the pointer lives for the call.
        var result = unsafe nlmsg_append(message, &header, MemoryLayout<ifinfomsg>.size, Int32(NLMSG_ALIGNTO))
        if let maximumTransmissionUnit, result == 0 {
            result = unsafe nla_put_u32(message, Int32(IFLA_MTU), UInt32(clamping: maximumTransmissionUnit))
        }
        return unsafe NetlinkMessage.finish(message, result)
    }

    /// Lists the addresses, routes or rules of a family.
    static func list(_ type: NetlinkList, of family: AddressFamily) -> OpaquePointer? {
        let flags = Int32(NLM_F_REQUEST) | Int32(NLM_F_DUMP)
        guard let message = unsafe nlmsg_alloc_simple(type.messageType, flags) else { return nil }
        // Each of the three headers begins with the family and is of zeros otherwise; this one is the largest.
        var header = rtmsg()
        header.rtm_family = UInt8(family.socketFamily)
        // libnl copies what it is given; the pointer lives for the call.
        let result = unsafe nlmsg_append(message, &header, type.headerSize, Int32(NLMSG_ALIGNTO))
        return unsafe NetlinkMessage.finish(message, result)
    }

    private static func abstractAddress(_ address: IPAddress, length: UInt8) throws(NetlinkError) -> OpaquePointer {
        let built: OpaquePointer?
        // libnl copies what it is given; the pointers live for each call.
        switch address {
        case .v4(let address):
            var bits = address.bits.bigEndian
            unsafe built = nl_addr_build(AF_INET, &bits, 4)
        case .v6(let address):
            var halves = (address.high.bigEndian, address.low.bigEndian)
            unsafe built = nl_addr_build(AF_INET6, &halves, 16)
        }
        guard let built = unsafe built else { throw .library(NLE_NOMEM) }
        unsafe nl_addr_set_prefixlen(built, Int32(length))
        return unsafe built
    }
}

extension RouteEntry {
    /// How far away its destinations are (rtnetlink(7)); it means nothing for IPv6.
    fileprivate var scope: Int {
        kind == .device && AddressFamily(of: destination.value.address) == .v4
            ? Int(RT_SCOPE_LINK.rawValue) : Int(RT_SCOPE_UNIVERSE.rawValue)
    }
}

/// What the kernel can be asked to list.
enum NetlinkList {
    case addresses
    case routes
    case rules

    /// The type of the question.
    fileprivate var messageType: Int32 {
        switch self {
        case .addresses: Int32(RTM_GETADDR)
        case .routes: Int32(RTM_GETROUTE)
        case .rules: Int32(RTM_GETRULE)
        }
    }

    /// The size of the question's header in bytes.
    fileprivate var headerSize: Int {
        switch self {
        case .addresses: MemoryLayout<ifaddrmsg>.size
        case .routes: MemoryLayout<rtmsg>.size
        case .rules: MemoryLayout<fib_rule_hdr>.size
        }
    }
}
