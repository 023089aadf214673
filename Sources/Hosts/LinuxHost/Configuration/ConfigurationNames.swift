internal import IPPacket
internal import PacketTunnel

extension ConfigurationField {
    /// The name that an upstream or a proxy is known by.
    func identifier() -> String? {
        parsed("a name of letters, digits, hyphens and underscores, 63 at most") { name in
            let isValid = name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
            return isValid && name.utf8.count <= 63 ? name : nil
        }
    }

    /// A domain or host name in lower case, without a dot at its end.
    func domain() -> String? {
        parsed("a name such as corp.example, which stands for all below it too") { name in
            HostName.isValid(name) ? HostName.canonical(name) : nil
        }
    }

    func address() -> IPAddress? {
        parsed("an address such as 192.0.2.1 or 2001:db8::1") { try? IPAddress(parsing: $0) }
    }

    /// A prefix whose bits behind its length are zero.
    func network() -> IPPrefix? {
        guard let text = text("a prefix such as 10.0.0.0/8 or fd00::/8") else { return nil }
        guard text.contains("/"), let prefix = try? IPPrefix(parsing: text) else {
            note(.expected("a prefix such as 10.0.0.0/8 or fd00::/8"))
            return nil
        }
        guard (try? IPAddress(parsing: text.prefix { $0 != "/" })) == prefix.address else {
            note(.expected("a prefix without bits behind its length: \(prefix)"))
            return nil
        }
        return prefix
    }
}

/// The names that some part of a configuration can refer to.
struct KnownNames {
    /// What has the names: `upstream`.
    let what: String
    /// The names.
    private(set) var names: [String] = []
    /// True when a name could not be read, so that it is not known what is unknown.
    private var isIncomplete = false

    init(what: String) {
        self.what = what
    }

    /// Takes up names that something has which is not in the file.
    mutating func admit(_ names: [String]) {
        self.names += names
    }

    /// Reads the name of something, which nothing before may have.
    mutating func define(_ field: ConfigurationField?) -> String? {
        guard let field, let name = field.identifier() else {
            isIncomplete = true
            return nil
        }
        if names.contains(name) {
            field.note(.conflict("another \(what) is called \"\(name)\""))
            return nil
        }
        names.append(name)
        return name
    }

    /// Reads a name that something has.
    func reference(_ field: ConfigurationField) -> String? {
        guard
            let name = field.text("the name of \(what.first.map { "aeiou".contains($0) } == true ? "an" : "a") \(what)")
        else { return nil }
        if names.contains(name) || isIncomplete { return name }
        field.note(.unknownName(String(name.prefix(64)), what: what, nearest: Spelling.nearest(to: name, among: names)))
        return nil
    }
}
