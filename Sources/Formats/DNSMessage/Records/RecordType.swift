/// What a record holds, or a question asks for: a number of the IANA registry "Resource Record (RR) TYPEs".
public struct RecordType: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The number as it is on the wire.
    public var rawValue: UInt16

    /// The type with this number.
    @inlinable
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// An IPv4 address, 1 (RFC 1035).
    @inlinable public static var a: Self { Self(rawValue: 1) }
    /// A name server, 2 (RFC 1035).
    @inlinable public static var ns: Self { Self(rawValue: 2) }
    /// The name's canonical name, 5 (RFC 1035).
    @inlinable public static var cname: Self { Self(rawValue: 5) }
    /// The start of a zone of authority, 6 (RFC 1035).
    @inlinable public static var soa: Self { Self(rawValue: 6) }
    /// Another name, 12 (RFC 1035).
    @inlinable public static var ptr: Self { Self(rawValue: 12) }
    /// A host's kind, 13 (RFC 1035); also what a short answer to ANY holds (RFC 8482 §4.2).
    @inlinable public static var hinfo: Self { Self(rawValue: 13) }
    /// A mail exchange, 15 (RFC 1035).
    @inlinable public static var mx: Self { Self(rawValue: 15) }
    /// Text, 16 (RFC 1035).
    @inlinable public static var txt: Self { Self(rawValue: 16) }
    /// A signature of before DNSSEC's revision, 24 (RFC 2931: SIG(0)).
    @inlinable public static var sig: Self { Self(rawValue: 24) }
    /// An IPv6 address, 28 (RFC 3596).
    @inlinable public static var aaaa: Self { Self(rawValue: 28) }
    /// Where a service is, 33 (RFC 2782).
    @inlinable public static var srv: Self { Self(rawValue: 33) }
    /// Rules to rewrite names, 35 (RFC 3403).
    @inlinable public static var naptr: Self { Self(rawValue: 35) }
    /// Another place for all below a name, 39 (RFC 6672).
    @inlinable public static var dname: Self { Self(rawValue: 39) }
    /// EDNS, 41 (RFC 6891).
    @inlinable public static var opt: Self { Self(rawValue: 41) }
    /// The hash of a child zone's key, 43 (RFC 4034).
    @inlinable public static var ds: Self { Self(rawValue: 43) }
    /// A signature, 46 (RFC 4034).
    @inlinable public static var rrsig: Self { Self(rawValue: 46) }
    /// The proof that names and types are absent, 47 (RFC 4034).
    @inlinable public static var nsec: Self { Self(rawValue: 47) }
    /// A zone's key, 48 (RFC 4034).
    @inlinable public static var dnskey: Self { Self(rawValue: 48) }
    /// The same proof about hashed names, 50 (RFC 5155).
    @inlinable public static var nsec3: Self { Self(rawValue: 50) }
    /// A service's parameters, 64 (RFC 9460).
    @inlinable public static var svcb: Self { Self(rawValue: 64) }
    /// A web service's parameters, 65 (RFC 9460).
    @inlinable public static var https: Self { Self(rawValue: 65) }
    /// Agreement on a key, 249 (RFC 2930).
    @inlinable public static var tkey: Self { Self(rawValue: 249) }
    /// A transaction's signature, 250 (RFC 8945).
    @inlinable public static var tsig: Self { Self(rawValue: 250) }
    /// The changes of a zone, 251 (RFC 1995); only in questions.
    @inlinable public static var ixfr: Self { Self(rawValue: 251) }
    /// A whole zone, 252 (RFC 5936); only in questions.
    @inlinable public static var axfr: Self { Self(rawValue: 252) }
    /// All that there is, 255 (RFC 8482); only in questions.
    @inlinable public static var any: Self { Self(rawValue: 255) }

    /// True for the types that no zone holds and a proxy does not ask for: OPT, and 249 to 254 (TKEY, TSIG, IXFR, AXFR, MAILB,
    /// MAILA).
    @inlinable public var isMeta: Bool { self == .opt || 249...254 ~= rawValue }

    /// True for what is only there for DNSSEC: RRSIG, NSEC and NSEC3. It goes to those who ask for it (RFC 4035 §3.2.1).
    @inlinable public var isDNSSECProof: Bool { self == .rrsig || self == .nsec || self == .nsec3 }
}

/// The class of a record or question (RFC 1035 §3.2.4).
public struct RecordClass: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    /// The number as it is on the wire.
    public var rawValue: UInt16

    /// The class with this number.
    @inlinable
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The Internet, 1.
    @inlinable public static var internet: Self { Self(rawValue: 1) }
    /// Chaos, 3: what a server says about itself.
    @inlinable public static var chaos: Self { Self(rawValue: 3) }
    /// Hesiod, 4.
    @inlinable public static var hesiod: Self { Self(rawValue: 4) }
    /// No class, 254 (RFC 2136).
    @inlinable public static var none: Self { Self(rawValue: 254) }
    /// Any class, 255; only in questions.
    @inlinable public static var any: Self { Self(rawValue: 255) }
}
