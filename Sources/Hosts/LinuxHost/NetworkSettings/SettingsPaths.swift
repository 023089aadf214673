/// Where settings find and leave things.
struct SettingsPaths: Hashable, Sendable {
    /// The folder of the records that settings are undone from.
    var stateFolder = "/run/sluice"
    /// The folder of what has to outlive the machine's going down.
    var lastingFolder = "/var/lib/sluice"
    /// The file that the C library reads resolvers from.
    var resolverFile = "/etc/resolv.conf"
    /// The socket that systemd-resolved listens on while it runs.
    var resolvedSocket = "/run/systemd/resolve/io.systemd.Resolve"
    /// Debian's list of the order of resolvconf's records.
    var resolvconfOrder = "/etc/resolvconf/interface-order"
    /// The folders that programs are looked for in.
    var programFolders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
}
