internal import IPPacket
internal import Provider

/// A value that has a text form which can be read back.
protocol TextRepresentable: Hashable, Sendable, CustomStringConvertible {
    /// The value that a text stands for; nil when it stands for none.
    init?(representedBy text: String)
}

/// A value of a core, which knows nothing of encoders, on its way between processes or into a file: as its text.
struct TextCoded<Value: TextRepresentable>: Hashable, Codable, Sendable {
    /// The value.
    var value: Value

    /// Wraps a value.
    init(_ value: Value) {
        self.value = value
    }

    /// Reads the text and checks it again: the other side is not trusted to have done so.
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = Value(representedBy: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a text of such a value")
        }
        self.value = value
    }

    /// Writes the text.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value.description)
    }
}

extension IPAddress: TextRepresentable {
    init?(representedBy text: String) {
        do throws(IPAddressError) { self = try IPAddress(parsing: text) } catch { return nil }
    }
}

extension IPPrefix: TextRepresentable {
    init?(representedBy text: String) {
        do throws(IPAddressError) { self = try IPPrefix(parsing: text) } catch { return nil }
    }
}

extension InterfaceAddress: TextRepresentable {
    init?(representedBy text: String) {
        do throws(IPAddressError) { self = try InterfaceAddress(parsing: text) } catch { return nil }
    }
}
