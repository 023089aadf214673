/// Why a record cannot be one of the proxy's own.
public enum LocalRecordError: Error, Hashable, Sendable {
    /// Its class is not IN.
    case otherClass
    /// It is of a type that no zone has records of: OPT for one.
    case notOfAZone
    /// The name has the same record already.
    case repeated
    /// The name is an alias and has other records too, or is an alias of two names (RFC 1034 §3.6.2).
    case besidesAlias
    /// The name has as many records as it may have.
    case tooMany
}

extension LocalRecordError: CustomStringConvertible {
    /// What is wrong, behind "the record".
    public var description: String {
        switch self {
        case .otherClass: "is not of class IN"
        case .notOfAZone: "is of a type that names have no records of"
        case .repeated: "is there already"
        case .besidesAlias: "is beside a CNAME: a name that has one has nothing else"
        case .tooMany: "is one too many: a name has \(LocalNames.maximumRecordCount) at most"
        }
    }
}
