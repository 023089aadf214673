public import DNSMessage

/// What hosts files say: the addresses of names, the names of addresses, and which names are blocked.
///
/// ```
///   192.0.2.9  nas.example nas    # comment       both names have the address, the address has the first name
///   0.0.0.0    ads.example                        blocked, and :: as well
///   127.0.0.1  ads.example                        blocked, and ::1 as well; but see below
///   127.0.0.1  localhost build.internal myhost    the machine itself
/// ```
///
/// Lists of what is to be blocked write 127.0.0.1 as well as 0.0.0.0, and so do people who mean the machine itself. They mean it when the
/// name has one label, is the machine's own, or is in a domain that is never delegated: nobody blocks those.
public struct HostNames: Sendable {
    /// How much hosts files held.
    public struct Counts: Equatable, Sendable {
        /// Addresses of names.
        public var addresses = 0
        /// Names that are blocked.
        public var blocked = 0
        /// Lines that are neither empty nor of any use.
        public var ignoredLines = 0

        /// Nothing.
        public init() {}
    }

    /// The records of the names, and of their addresses.
    var names = LocalNames()
    /// The names that are blocked.
    var blocked = NameSet()
    /// How much there was so far.
    public internal(set) var counts = Counts()
    /// The machine's name.
    let ownName: DomainName?

    /// For how many seconds clients may keep an address: a file may change at any time.
    static var timeToLive: UInt32 { 60 }

    /// Nothing so far.
    ///
    /// - Parameter ownName: The name of the machine, with or without its domain.
    public init(ownName: DomainName? = nil) {
        self.ownName = ownName
    }

    /// True for the types that hosts files have the last word about.
    static func isAbout(_ type: RecordType) -> Bool {
        type == .a || type == .aaaa || type == .ptr || type == .https || type == .svcb || type == .any
    }
}
