internal import CNetlink
internal import Glibc
internal import IPPacket
internal import Provider

/// What a listing tells about a route.
struct ListedRoute: Equatable, Sendable {
    /// Its table.
    var table: UInt32
    /// The length of its prefix in bits.
    var prefixLength: UInt8
    /// Its destination; nil for a default route.
    var destination: IPAddress?
    /// The interface that it leads out of; nil for a route without one, or with several.
    var interfaceIndex: UInt32?
    /// The router that it leads to; nil when it leads to the link itself.
    var gateway: IPAddress?
    /// Its metric: lower ones win.
    var metric: UInt32
    /// Who added it.
    var protocolNumber: UInt8
    /// The route's own MTU in bytes, when it has one.
    var maximumTransmissionUnit: Int?
}

/// What a listing tells about a rule.
struct ListedRule: Equatable, Sendable {
    /// Rules with lower numbers come first.
    var priority: UInt32
    /// The table that is looked up, 0 for none.
    var table: UInt32
    /// The firewall mark that it asks for, 0 for none.
    var mark: UInt32
    /// True when it concerns the packets that do not fit.
    var isInverted: Bool
    /// Who added it.
    var protocolNumber: UInt8
}

extension NetlinkSocket {
    /// Calls `body` with every route of a family in every table.
    func forEachRoute(of family: AddressFamily, _ body: (ListedRoute) -> Void) throws(NetlinkError) {
        try unsafe dump(NetlinkRequest.list(.routes, of: family)) { message in
            // Each is a complete message, as NetlinkSocket hands them over.
            guard let header = unsafe NetlinkMessage.header(of: message, as: rtmsg.self) else { return }
            let size = Int32(MemoryLayout<rtmsg>.size)
            func attribute(_ type: rtattr_type_t) -> UnsafeMutablePointer<nlattr>? {
                unsafe nlmsg_find_attr(message, size, Int32(type.rawValue))
            }
            // A clone made for one destination is no route of anybody's.
            guard header.rtm_flags & UInt32(RTM_F_CLONED) == 0 else { return }
            unsafe body(
                ListedRoute(
                    table: NetlinkMessage.integer(attribute(RTA_TABLE)) ?? UInt32(header.rtm_table),
                    prefixLength: header.rtm_dst_len,
                    destination: NetlinkMessage.address(attribute(RTA_DST), family: Int32(header.rtm_family)),
                    interfaceIndex: NetlinkMessage.integer(attribute(RTA_OIF)),
                    gateway: NetlinkMessage.address(attribute(RTA_GATEWAY), family: Int32(header.rtm_family)),
                    metric: NetlinkMessage.integer(attribute(RTA_PRIORITY)) ?? 0, protocolNumber: header.rtm_protocol,
                    maximumTransmissionUnit: NetlinkMessage.routeMTU(message)))
        }
    }

    /// The rules of a family, in the order that they are tried.
    func rules(of family: AddressFamily) throws(NetlinkError) -> [ListedRule] {
        var rules: [ListedRule] = []
        try unsafe dump(NetlinkRequest.list(.rules, of: family)) { message in
            // Each is a complete message, as NetlinkSocket hands them over.
            guard let header = unsafe NetlinkMessage.header(of: message, as: fib_rule_hdr.self) else { return }
            let size = Int32(MemoryLayout<fib_rule_hdr>.size)
            func number(_ type: Int) -> UInt32? {
                unsafe NetlinkMessage.integer(nlmsg_find_attr(message, size, Int32(type)))
            }
            var owner: UInt8 = 0
            if let attribute = unsafe nlmsg_find_attr(message, size, Int32(FRA_PROTOCOL)),
                unsafe nla_len(attribute) == 1
            {
                // One byte, as was checked.
                owner = unsafe nla_data(attribute).load(as: UInt8.self)
            }
            rules.append(
                ListedRule(
                    priority: number(FRA_PRIORITY) ?? 0, table: number(FRA_TABLE) ?? UInt32(header.table),
                    mark: number(FRA_FWMARK) ?? 0, isInverted: header.flags & UInt32(FIB_RULE_INVERT) != 0,
                    protocolNumber: owner))
        }
        return rules
    }

    /// The addresses of an interface.
    func addresses(of index: UInt32) throws(NetlinkError) -> [InterfaceAddress] {
        var addresses: [InterfaceAddress] = []
        for family in AddressFamily.allCases {
            do throws(NetlinkError) {
                try unsafe dump(NetlinkRequest.list(.addresses, of: family)) { message in
                    // Each is a complete message, as NetlinkSocket hands them over.
                    guard let header = unsafe NetlinkMessage.header(of: message, as: ifaddrmsg.self),
                        header.ifa_index == index,
                        case .addressAdded(let address, _)? = unsafe NetlinkMessage.change(message),
                        Int(header.ifa_prefixlen) <= address.bitWidth
                    else { return }
                    addresses.append(InterfaceAddress(address: address, prefixLength: header.ifa_prefixlen))
                }
            } catch {
                // A kernel without the family has none of its addresses.
                guard error.meansMissingFamily else { throw error }
            }
        }
        return addresses
    }
}

extension NetlinkError {
    /// True when the kernel cannot do what it was asked for because it lacks the whole family.
    var meansMissingFamily: Bool {
        self == .refused(errno: EAFNOSUPPORT) || self == .refused(errno: EOPNOTSUPP)
    }
}
