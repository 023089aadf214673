internal import CLinux
internal import Glibc
internal import Provider

/// Why settings were not applied. Nothing of them is in force then.
enum InterfaceSettingsError: Error, Hashable, Codable, Sendable {
    /// The system refused a step, with this error number.
    case refused(SettingsVerb, SettingsObject, errno: Int32)
    /// A program or library that a step needs refused it, in its own words.
    case declined(SettingsVerb, SettingsObject, reason: String)
    /// `net.ipv4.conf.all.src_valid_mark` must be 1 and cannot be written.
    case sourceValidMarkReadOnly
    /// Something that has to be known beforehand could not be asked for, with this error number.
    case question(Subject, errno: Int32)
    /// There is no such interface in the network namespace of the service.
    case unknownInterface
    /// Another process that lives has settings on this interface.
    case interfaceInUse
    /// Another process that lives has pointed the machine's resolver at itself.
    case resolverInUse
    /// Every table, or every range of rule priorities, is taken.
    case noFreeTable
    /// Routes that are kept out of the tunnel cannot be in the main table: they would lead nowhere.
    case excludedRoutesInMainTable
    /// The record that settings are undone from cannot be kept.
    case record(SystemCallError)

    /// What was asked for.
    enum Subject: String, Hashable, Codable, Sendable {
        case link
        case routes
        case rules
        case addresses
    }
}

/// What was to be done with an object.
enum SettingsVerb: String, Hashable, Codable, Sendable {
    case add
    case remove
    case set
}

extension InterfaceSettingsError: CustomStringConvertible {
    /// What could not be done and why, for whoever configured it: it names addresses.
    var description: String {
        switch self {
        case .refused(let verb, .resolvers, EPERM):
            "cannot \(verb.rawValue) the resolvers: \(errorText(EPERM)) (root is stopped by a file that is immutable)"
        case .refused(let verb, let object, let errno): "cannot \(verb.rawValue) \(object): \(errorText(errno))"
        case .declined(let verb, let object, let reason): "cannot \(verb.rawValue) \(object): \(reason)"
        case .sourceValidMarkReadOnly:
            "net.ipv4.conf.all.src_valid_mark has to be 1 for this tunnel, and /proc/sys is read-only here: set it from "
                + "outside (sysctls of the container)"
        case .question(let subject, let errno): "cannot ask the kernel for \(subject.rawValue): \(errorText(errno))"
        case .unknownInterface: "there is no such interface here"
        case .interfaceInUse: "another process has settings on this interface"
        case .resolverInUse: "another process has pointed the machine's resolver at itself"
        case .noFreeTable: "there is no free routing table"
        case .excludedRoutesInMainTable: "excluded routes cannot be in the main table"
        case .record(let error): "cannot keep the record to undo settings from: \(error)"
        }
    }
}

extension InterfaceSettingsError {
    /// The same without addresses and words of other programs: this can be in a log.
    var publicDescription: String {
        switch self {
        case .refused(_, .resolvers, _): description
        case .refused(let verb, let object, let errno): "cannot \(verb.rawValue) \(object.kind): \(errorText(errno))"
        case .declined(let verb, let object, _): "cannot \(verb.rawValue) \(object.kind)"
        case .sourceValidMarkReadOnly, .question, .unknownInterface, .interfaceInUse, .resolverInUse, .noFreeTable,
            .excludedRoutesInMainTable, .record:
            description
        }
    }

    /// The system's number for the reason.
    var errorNumber: Int32 {
        switch self {
        case .refused(_, _, let errno), .question(_, let errno): errno
        case .declined: EIO
        case .sourceValidMarkReadOnly: EROFS
        case .unknownInterface: ENODEV
        case .interfaceInUse, .resolverInUse: EBUSY
        case .noFreeTable: ENOSPC
        case .excludedRoutesInMainTable: EINVAL
        case .record(let error): error.errno
        }
    }
}

/// The system's message for an error number.
func errorText(_ number: Int32) -> String {
    // A static string or null.
    guard let message = unsafe clinux_error_description(number) else { return "error \(number)" }
    return unsafe String(cString: message)
}

extension NetlinkError {
    /// The system's number for the reason.
    var errorNumber: Int32 {
        switch self {
        case .refused(let errno): errno
        case .library: EIO
        case .malformedAnswer: EPROTO
        }
    }
}

extension InterfaceSettingsError {
    /// The failure as a provider is told it.
    var asNetworkSettingsError: NetworkSettingsError {
        switch self {
        case .excludedRoutesInMainTable: .networkSettingsInvalid
        case .refused(_, _, errno: EINVAL), .refused(_, _, errno: EEXIST): .networkSettingsInvalid
        default: .networkSettingsFailed
        }
    }
}
