import ByteAccess
public import IPPacket

extension RecordView {
    /// The address of an A or AAAA record; nil for others.
    public var address: IPAddress? {
        switch layout.type {
        case .a: .v4(bytes.ipv4Address(at: layout.data.lowerBound))
        case .aaaa: .v6(bytes.ipv6Address(at: layout.data.lowerBound))
        default: nil
        }
    }

    /// The name that a record leads to: the target of CNAME, DNAME, NS, PTR, MX, SRV, SVCB and HTTPS; nil for others.
    ///
    /// The root stands for the owner itself in SVCB and HTTPS of a priority above 0 (RFC 9460 §2.5.2), and for "no such service" in
    /// SRV, MX and those of priority 0.
    public var target: DomainNameView? {
        @_lifetime(copy self)
        get {
            switch layout.type {
            case .cname, .dname, .ns, .ptr: name(at: layout.data.lowerBound)
            case .mx, .svcb, .https: name(at: layout.data.lowerBound + 2)
            case .srv: name(at: layout.data.lowerBound + 6)
            default: nil
            }
        }
    }

    /// The preference of MX, or the priority of SRV, SVCB and HTTPS: lower goes first, and 0 in SVCB and HTTPS means an alias.
    public var priority: UInt16? {
        switch layout.type {
        case .mx, .srv, .svcb, .https: bytes.bigEndianUInt16(at: layout.data.lowerBound)
        default: nil
        }
    }

    /// What an SOA record says; nil for others.
    public var startOfAuthority: StartOfAuthorityView? {
        @_lifetime(copy self)
        get {
            guard layout.type == .soa else { return nil }
            return StartOfAuthorityView(bytes, layout)
        }
    }

    /// What an SRV record says besides its target; nil for others.
    public var service: (priority: UInt16, weight: UInt16, port: UInt16)? {
        guard layout.type == .srv else { return nil }
        let start = layout.data.lowerBound
        return (
            bytes.bigEndianUInt16(at: start), bytes.bigEndianUInt16(at: start + 2), bytes.bigEndianUInt16(at: start + 4)
        )
    }

    /// The type that the signature of an RRSIG or SIG record covers; nil for others.
    public var coveredType: RecordType? {
        guard layout.type == .rrsig || layout.type == .sig else { return nil }
        return RecordType(rawValue: bytes.bigEndianUInt16(at: layout.data.lowerBound))
    }
}

/// The data of an SOA record (RFC 1035 §3.3.13).
public struct StartOfAuthorityView: ~Escapable {
    private let bytes: RawSpan
    /// MNAME: the zone's primary server.
    private let primaryLayout: NameLayout
    /// RNAME: the mailbox of who is responsible.
    private let mailboxLayout: NameLayout

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ record: RecordLayout) {
        guard let primary = try? NameLayout(checking: bytes, at: record.data.lowerBound),
            let mailbox = try? NameLayout(checking: bytes, at: primary.endOffset)
        else { preconditionFailure("names that were checked with the message") }
        self.bytes = bytes
        primaryLayout = primary
        mailboxLayout = mailbox
    }

    /// MNAME: the zone's primary server.
    public var primaryServer: DomainNameView {
        @_lifetime(copy self)
        get { DomainNameView(bytes, primaryLayout) }
    }

    /// RNAME: the mailbox of who is responsible, its first dot standing for the at sign.
    public var mailbox: DomainNameView {
        @_lifetime(copy self)
        get { DomainNameView(bytes, mailboxLayout) }
    }

    /// SERIAL: the version of the zone.
    public var serial: UInt32 { field(0) }
    /// REFRESH, in seconds.
    public var refresh: UInt32 { field(1) }
    /// RETRY, in seconds.
    public var retry: UInt32 { field(2) }
    /// EXPIRE, in seconds.
    public var expire: UInt32 { field(3) }
    /// MINIMUM: how many seconds the absence of a name may be kept (RFC 2308 §4); too large a number counts as 0.
    public var minimum: UInt32 { TimeToLive.effective(field(4)) }

    private func field(_ index: Int) -> UInt32 { bytes.bigEndianUInt32(at: mailboxLayout.endOffset + 4 * index) }
}
