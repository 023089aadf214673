internal import Glibc

/// The kernel setting by which the check of the way back (`rp_filter`) looks at marks. All tunnels share it: the first sets it,
/// the last that counts on it sets it back.
struct SourceValidMark {
    /// Where things are.
    let paths: SettingsPaths

    private static let settingPath = "/proc/sys/net/ipv4/conf/all/src_valid_mark"

    /// Sets it to 1 unless it is 1, and remembers that.
    func enable(_ object: SettingsObject) throws(InterfaceSettingsError) {
        do throws(SystemCallError) {
            if try WholeFile.read(Self.settingPath).first == UInt8(ascii: "1") { return }
            let memory = try memoryPath()
            let file = FileDescriptor(
                adopting: try systemCall("open") {
                    unsafe open(memory, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
                })
            do throws(SystemCallError) {
                try write("1")
            } catch {
                unsafe unlink(memory)
                throw error
            }
            _ = file.rawValue
        } catch {
            if [EROFS, EACCES, EPERM].contains(error.errno) { throw .sourceValidMarkReadOnly }
            throw .refused(.set, object, errno: error.errno)
        }
    }

    /// Sets it back if we set it and no rule is left that a tunnel, or wg-quick, put there.
    func disable(asking netlink: borrowing NetlinkSocket) throws(InterfaceSettingsError) {
        guard let memory = try? memoryPath(), unsafe access(memory, F_OK) == 0 else { return }
        let rules: [ListedRule]
        do throws(NetlinkError) {
            rules = try netlink.rules(of: .v4)
        } catch { throw .question(.rules, errno: error.errorNumber) }
        let isNeeded = rules.contains {
            $0.mark != 0 && ($0.isInverted || $0.protocolNumber == RouteEntry.protocolNumber)
        }
        if isNeeded { return }
        do throws(SystemCallError) {
            try write("0")
        } catch { throw .refused(.set, .sourceValidMark, errno: error.errno) }
        unsafe unlink(memory)
    }

    private func write(_ value: String) throws(SystemCallError) {
        let setting = FileDescriptor(
            adopting: try systemCall("open") { unsafe open(Self.settingPath, O_WRONLY | O_CLOEXEC) })
        try WholeFile.write(Array(value.utf8), to: setting)
    }

    /// A file that is there while the setting is ours to set back, in this network namespace.
    private func memoryPath() throws(SystemCallError) -> String {
        "\(paths.stateFolder)/\(try SettingsRecordFile.prefix())src_valid_mark"
    }
}
