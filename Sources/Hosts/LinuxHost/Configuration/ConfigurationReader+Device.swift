internal import Glibc
internal import IPPacket
internal import PacketTunnel
internal import Provider
internal import WireGuard

extension ConfigurationReader {
    /// Reads `device`.
    static func device(_ object: inout ConfigurationObject) -> DeviceConfiguration {
        var device = DeviceConfiguration()
        if let field = object.field("name"), let name = field.text("the name of an interface") {
            do throws(InterfaceName.Invalid) {
                device.name = try InterfaceName(name)
            } catch {
                field.note(.conflict(error.description))
            }
        }
        device.addresses = object.field("addresses")?.set { field in
            field.parsed("an address and a prefix length such as 10.8.0.2/24 or fd00:8::2/64") { text in
                guard let address = try? InterfaceAddress(parsing: text), !address.address.isUnspecified,
                    !address.address.isMulticast
                else { return nil }
                return address
            }
        }
        device.mtu = object.field("mtu")?.integer(in: 68...65535)
        device.includedRoutes = object.field("includedRoutes")?.set { $0.network() }
        let included = Set(device.includedRoutes ?? [])
        device.excludedRoutes = object.field("excludedRoutes")?.set { field in
            guard let route = field.network() else { return nil }
            if included.contains(route) { field.note(.conflict("is in includedRoutes too")) }
            return route
        }
        return device
    }

    /// Reads `tunnel`, and the file that it names.
    static func tunnel(_ object: inout ConfigurationObject) -> TunnelFileConfiguration? {
        guard let field = object.requiredField("config"), let (path, rule) = field.secretFile() else { return nil }
        do throws(ConfigurationFileError) {
            let file = try ConfigurationFile.read(path, rule: rule, limit: 4 << 20)
            do throws(QuickConfigurationErrors) {
                let quick = try file.withBytes { bytes throws(QuickConfigurationErrors) in
                    try QuickConfiguration(reading: bytes)
                }
                return TunnelFileConfiguration(path: path, quick: quick, interfaceName: interfaceName(ofFile: path))
            } catch {
                for error in error.errors {
                    field.problems.note(
                        ConfigurationError(
                            file: path, line: error.line, column: nil, key: error.key?.rawValue, problem: .quick(error))
                    )
                }
                field.problems.noteOmitted(error.omittedCount)
            }
        } catch {
            field.note(.conflict("\(path) \(error)"))
        }
        return nil
    }

    /// The name of the interface that wg-quick gives a file.
    private static func interfaceName(ofFile path: String) -> InterfaceName? {
        guard path.hasSuffix(".conf") else { return nil }
        let name = path.dropLast(5)
        return try? InterfaceName(String(name[(name.lastIndex(of: "/").map(name.index(after:)) ?? name.startIndex)...]))
    }

    /// Reads `offloads`.
    static func offloads(_ object: inout ConfigurationObject) -> Offloads {
        var offloads = Offloads()
        offloads.tun = object.field("tun")?.boolean() ?? offloads.tun
        offloads.udpSegment = object.field("udpSegment")?.boolean() ?? offloads.udpSegment
        offloads.udpGRO = object.field("udpGRO")?.boolean() ?? offloads.udpGRO
        return offloads
    }

    /// Reads `log`.
    static func log(_ object: inout ConfigurationObject) -> LogConfiguration {
        var log = LogConfiguration()
        log.level = object.field("level")?.choice(LogConfiguration.Level.self) ?? log.level
        log.showsPrivate = object.field("showPrivate")?.boolean() ?? log.showsPrivate
        return log
    }

    /// Reads `control`.
    static func controlSocket(_ object: inout ConfigurationObject) -> String? {
        // A socket's address has room for 107 bytes and a terminator.
        object.field("socket")?.parsed("an absolute path of at most 107 bytes") { path in
            path.hasPrefix("/") && path.utf8.count <= 107 ? path : nil
        }
    }
}

extension ConfigurationField {
    /// The path of a file that holds secrets, and what is asked of it.
    func secretFile() -> (path: String, rule: ConfigurationFile.Rule)? {
        guard let text = text("an absolute path or credential:NAME") else { return nil }
        guard text.hasPrefix("credential:") else {
            guard text.hasPrefix("/") else {
                note(.expected("an absolute path or credential:NAME"))
                return nil
            }
            return (text, .secret)
        }
        let name = text.dropFirst("credential:".count)
        guard !name.isEmpty, name != ".", name != "..", !name.contains("/"), name.utf8.count <= 255 else {
            note(.expected("an absolute path or credential:NAME"))
            return nil
        }
        guard let folder = WireGuardOptions.variable("CREDENTIALS_DIRECTORY"), folder.hasPrefix("/") else {
            note(.file(.noCredentials))
            return nil
        }
        return ("\(folder)/\(name)", .credential)
    }

    /// The path of a file that exists and holds no secrets.
    func readableFile() -> String? {
        guard let path = path() else { return nil }
        do throws(ConfigurationFileError) {
            try ConfigurationFile.check(path, rule: .any)
            return path
        } catch {
            note(.conflict("\(path) \(error)"))
            return nil
        }
    }
}
