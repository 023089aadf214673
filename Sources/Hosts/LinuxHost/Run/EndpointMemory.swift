internal import ByteAccess
internal import CLinux
internal import Glibc
internal import JSON5
internal import PacketTunnel
internal import WireGuard

/// Where the names of peers led to when they were last reached, kept for the next run: a machine whose resolver is out of reach
/// comes up with the addresses that were good. A file of lines of JSON that only its owner can read.
struct EndpointMemory {
    /// The folder of such files.
    static let folder = "/var/lib/sluice"
    /// The most names that are kept.
    private static let limit = 1_024

    /// The file; nil for a tunnel that is not to be remembered.
    let path: String

    /// The memory of the interface with a name.
    init(of name: InterfaceName, folder: String = Self.folder) {
        path = "\(folder)/\(name.string).endpoints"
    }

    /// What is remembered. Lines that are not understood are left out, and so is everything when the file cannot be read: it
    /// would have been a help only.
    func read() -> [EndpointName: Endpoint] {
        guard let bytes = try? WholeFile.read(path) else { return [:] }
        var endpoints: [EndpointName: Endpoint] = [:]
        for line in bytes.split(separator: UInt8(ascii: "\n")).prefix(Self.limit) {
            guard let (name, endpoint) = Self.entry(Array(line)) else { continue }
            endpoints[name] = endpoint
        }
        return endpoints
    }

    /// Keeps these in place of those before; without any there is no file.
    func write(_ endpoints: [EndpointName: Endpoint]) throws(SystemCallError) {
        if endpoints.isEmpty {
            if unsafe unlink(path) != 0 && errno != ENOENT { throw SystemCallError("unlink", errno: errno) }
            return
        }
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "/"
        if unsafe mkdir(folder, 0o700) != 0 && errno != EEXIST { throw SystemCallError("mkdir", errno: errno) }
        let temporary = "\(path).tmp"
        let descriptor = FileDescriptor(
            adopting: try systemCall("open") {
                unsafe open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
            })
        let lines = endpoints.sorted { ($0.key.host, $0.key.port) < ($1.key.host, $1.key.port) }
            .prefix(Self.limit).map { Self.line($0.key, $0.value) }
        try WholeFile.write(Array(lines.joined().utf8), to: descriptor)
        let (from, to) = (temporary, path)
        _ = try systemCall("rename") { unsafe rename(from, to) }
    }

    private static func line(_ name: EndpointName, _ endpoint: Endpoint) -> String {
        JSONText.object([
            ("host", .string(name.host)), ("port", .number(UInt64(name.port))),
            ("endpoint", .string(endpoint.text(interfaceName: InterfaceNumber.name))),
        ]).text + "\n"
    }

    private static func entry(_ line: [UInt8]) -> (EndpointName, Endpoint)? {
        guard let value = try? JSON5Value(reading: line.span.octets), case .object(let members) = value.content else {
            return nil
        }
        var host: String?
        var port: UInt16?
        var endpoint: Endpoint?
        for member in members {
            switch (member.name, member.value.content) {
            case ("host", .string(let text)): host = text
            case ("port", .integer(let number)): port = UInt16(exactly: number)
            case ("endpoint", .string(let text)):
                endpoint = try? Endpoint(parsing: text, interfaceIndex: InterfaceNumber.number)
            default: break
            }
        }
        guard let host, let port, let endpoint else { return nil }
        return (EndpointName(host: host, port: port), endpoint)
    }
}
