/// Why netlink did not do what was asked.
enum NetlinkError: Error, Hashable {
    /// The kernel refused with this error number: `ENODEV` for an unknown interface, `ENETUNREACH` for a destination
    /// without a route.
    case refused(errno: Int32)
    /// libnl could not send or receive; its own error number, positive.
    case library(Int32)
    /// The kernel's answer lacks what was asked for.
    case malformedAnswer
}
