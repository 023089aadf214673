internal import CLinux
internal import Glibc
internal import Provider

extension PrivilegedService {
    /// Brings settings of a device into force.
    mutating func applySettings(
        _ value: PacketTunnelNetworkSettings, _ routing: RoutingOptions, to identifier: DeviceIdentifier
    ) throws(PrivilegedFailure) -> PrivilegedExchange {
        let ofDevice: InterfaceSettings
        if let known = settings[identifier] { ofDevice = known } else { ofDevice = try makeSettings(of: identifier) }
        do throws(InterfaceSettingsError) {
            let applied = try ofDevice.apply(value, routing: routing)
            settings[identifier] = ofDevice
            return PrivilegedExchange(.settings(applied))
        } catch { throw .settings(error) }
    }

    /// Takes the settings of a device back.
    mutating func clearSettings(of identifier: DeviceIdentifier) throws(PrivilegedFailure) -> PrivilegedExchange {
        guard devices[identifier] != nil else { throw .unknownIdentifier }
        let notes = settings.removeValue(forKey: identifier)?.clear() ?? []
        return PrivilegedExchange(.settingsCleared(notes))
    }

    private func makeSettings(of identifier: DeviceIdentifier) throws(PrivilegedFailure) -> InterfaceSettings {
        guard let device = devices[identifier] else { throw .unknownIdentifier }
        // Another interface may have its name here.
        guard try isAtHome(device) else { throw .settings(.unknownInterface) }
        let number = device.descriptor.rawValue
        var flags: Int16 = 0
        // IFNAMSIZ bytes, which the function fills up to a terminator.
        let string = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(IFNAMSIZ)) { bytes -> String in
            guard let base = bytes.baseAddress, unsafe clinux_tun_get_interface(number, base, &flags) == 0 else {
                return ""
            }
            return unsafe String(cString: base)
        }
        guard let name = try? InterfaceName(string) else { throw .settings(.unknownInterface) }
        do throws(NetlinkError) {
            let netlink = try NetlinkSocket(adopting: try netlinkQuestionSocket())
            return InterfaceSettings(of: name, netlink: netlink, paths: settingsPaths)
        } catch { throw .settings(.question(.link, errno: error.errorNumber)) }
    }
}
