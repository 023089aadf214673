internal import Glibc
internal import IPPacket
internal import JSON5
internal import PacketTunnel
internal import Provider
internal import WireGuard

/// A configuration that was read, with what is needed to speak about its text.
public struct LoadedConfiguration: Sendable {
    /// The configuration.
    public var value: DaemonConfiguration
    /// The file, as it was named.
    public var file: String
    /// The lines that keys are on, by their path.
    var lines: [String: Int]

    /// The parts that the daemon is told to do and cannot do yet. A start is refused when there are any.
    public var unsupportedParts: [ConfigurationError] {
        var keys = ["filter", "proxies", "apps"]
        if value.dns == nil { keys.append("rules") }
        if value.rules?.lists.isEmpty == false { keys.append("rules.lists") }
        if value.rules?.files.isEmpty == false { keys.append("rules.files") }
        return keys.compactMap { key in
            lines[key].map { line in
                ConfigurationError(file: file, line: line, column: nil, key: nil, problem: .unsupported(key))
            }
        }.sorted { $0.line ?? 0 < $1.line ?? 0 }
    }
}

extension LoadedConfiguration {
    /// Where the configuration is unless the command line says otherwise.
    public static let defaultPath = "/etc/sluice/sluice.json5"

    /// The path of the control socket that a configuration names. Who only wants to ask a daemon need not be able to read the
    /// files with secrets; whatever else is wrong is the daemon's business. Without the usual file it is the usual socket.
    ///
    /// - Throws: When the file cannot be read, or is no JSON5.
    public static func controlSocket(of path: String) throws(ConfigurationErrors) -> String {
        let standard = DaemonConfiguration().controlSocket
        if path == defaultPath, unsafe access(path, F_OK) != 0 { return standard }
        let problems = ConfigurationProblems(file: path)
        guard let root = ConfigurationReader.root(of: path, problems) else {
            throw problems.result ?? ConfigurationErrors(errors: [], omittedCount: 0)
        }
        guard case .object(let members) = root.value.content else { return standard }
        var object = ConfigurationObject(members, root)
        return object.field("control")?.object { ConfigurationReader.controlSocket(&$0) } ?? standard
    }

    /// Reads a configuration and the wg-quick file that it names.
    ///
    /// Files with secrets, the wg-quick file for one, are named by an absolute path or as `credential:NAME`, which is systemd's
    /// credential of this name. They have to belong to root or who runs the program, and nobody else may have any permission;
    /// a credential's group may read it, because systemd admits a service's user in that way.
    ///
    /// - Throws: All that is wrong.
    public static func read(_ path: String) throws(ConfigurationErrors) -> LoadedConfiguration {
        let problems = ConfigurationProblems(file: path)
        let root = ConfigurationReader.root(of: path, problems)
        var reader = ConfigurationReader(problems: problems)
        if let root { reader.read(root) }
        if let errors = problems.result { throw errors }
        return LoadedConfiguration(value: reader.configuration, file: path, lines: problems.lines)
    }
}

/// Reads the keys at the top, and what they hold.
struct ConfigurationReader {
    let problems: ConfigurationProblems
    var configuration = DaemonConfiguration()

    init(problems: ConfigurationProblems) {
        self.problems = problems
    }

    /// The value that a whole file is.
    static func root(of path: String, _ problems: ConfigurationProblems) -> ConfigurationField? {
        do throws(ConfigurationFileError) {
            let file = try ConfigurationFile.read(path, rule: .any, limit: JSON5Value.maximumByteCount)
            do throws(JSON5Error) {
                let value = try file.withBytes { bytes throws(JSON5Error) in try JSON5Value(reading: bytes) }
                return ConfigurationField(value: value, path: "", line: value.position.line, problems: problems)
            } catch {
                let place = error.position
                problems.note(
                    ConfigurationError(
                        file: path, line: place.line, column: place.column, key: nil, problem: .syntax(error.problem)))
            }
        } catch {
            problems.note(ConfigurationError(file: path, line: nil, column: nil, key: nil, problem: .file(error)))
        }
        return nil
    }

    /// Reads everything.
    mutating func read(_ root: ConfigurationField) {
        guard case .object(let members) = root.value.content else {
            problems.note(line: root.line, key: nil, .expected("an object: { … }"))
            return
        }
        var object = ConfigurationObject(members, root)
        configuration.device = object.field("device")?.object { Self.device(&$0) }
        configuration.tunnel = object.field("tunnel")?.object { Self.tunnel(&$0) }
        configuration.dns = object.field("dns")?.object { Self.dns(&$0, configuration.tunnel) }
        configuration.rules = object.field("rules")?.object { Self.rules(&$0) }
        configuration.filter = object.field("filter")?.object { Self.filter(&$0) }
        var proxyNames = KnownNames(what: "proxy")
        configuration.proxies =
            object.field("proxies")?.list { field in
                field.object { Self.proxy(&$0, names: &proxyNames) }
            } ?? []
        let hasTunnel = problems.lines["tunnel"] != nil
        configuration.apps =
            object.field("apps")?.list { field in
                field.object { Self.app(&$0, proxies: proxyNames, hasTunnel: hasTunnel) }
            } ?? []
        configuration.metrics = object.field("metrics")?.object { Self.metrics(&$0) } ?? MetricsConfiguration()
        configuration.offloads = object.field("offloads")?.object { Self.offloads(&$0) } ?? Offloads()
        configuration.log = object.field("log")?.object { Self.log(&$0) } ?? LogConfiguration()
        configuration.controlSocket =
            object.field("control")?.object { Self.controlSocket(&$0) } ?? configuration.controlSocket
        object.noteUnknownKeys()
        checkDevice()
    }

    /// Checks what `device` and the tunnel's file have to agree on.
    private func checkDevice() {
        let device = configuration.device
        if let mtu = device?.mtu, mtu < 1280, let line = problems.lines["device.mtu"] {
            let addresses = device?.addresses ?? configuration.tunnel?.quick.tunnel.addresses ?? []
            if addresses.contains(where: { $0.address.version == .v6 }) {
                problems.note(
                    line: line, key: "device.mtu",
                    .conflict("expected at least 1280 because the device has an IPv6 address"))
            }
        }
        if let tunnel = configuration.tunnel, device?.name == nil, tunnel.interfaceName == nil,
            let line = problems.lines["tunnel.config"]
        {
            problems.note(
                line: line, key: "tunnel.config",
                .conflict("expected a file called IFNAME.conf, or device.name to say how the interface is called"))
        }
    }
}
