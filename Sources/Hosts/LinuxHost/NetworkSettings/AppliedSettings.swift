/// What a tunnel has to know about the settings that are in force now.
struct AppliedSettings: Hashable, Codable, Sendable {
    /// The firewall mark that the tunnel's own datagrams must have; nil when none is needed.
    var firewallMark: UInt32?
    /// The table of the tunnel's own; nil when it has none.
    var table: UInt32?
    /// The interface's MTU in bytes.
    var maximumTransmissionUnit: Int
    /// What is worth a line in the log.
    var notes: [SettingsNote] = []
}

/// Something that went otherwise than a user may expect, without being a failure.
enum SettingsNote: Hashable, Codable, Sendable {
    /// Somebody changed the resolver file after we did: it stays as it is.
    case resolverFileChangedByOthers
    /// The resolver file cannot tell domains apart: the tunnel's resolvers are asked about every name.
    case resolversTakeEveryName
    /// What an instance left that died was cleaned away.
    case leftoversRemoved
    /// The record of what such an instance had done could not be read, or not all of it: something may be there still.
    case leftoversUnreadable
    /// A step backwards failed, with this error number; what it was to remove may be there still.
    case notUndone(SettingsObject, errno: Int32)
}

extension SettingsNote: CustomStringConvertible {
    /// The note, for a log. It has no addresses and names.
    var description: String {
        switch self {
        case .resolverFileChangedByOthers: "the resolver file was changed by somebody else since: it stays as it is"
        case .resolversTakeEveryName:
            "the resolver file cannot tell domains apart: the tunnel's resolvers are asked about every name"
        case .leftoversUnreadable:
            "the record of an instance that died could not be read whole: something of its settings may be left"
        case .leftoversRemoved: "what an instance that died had left was removed"
        case .notUndone(let object, let errno): "\(object.kind) could not be undone: \(errorText(errno))"
        }
    }
}
