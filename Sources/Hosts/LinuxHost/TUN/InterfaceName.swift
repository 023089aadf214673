/// The name of a network interface, checked: 1 to 15 bytes that the kernel takes as they are and that neither a command
/// line nor a path can mistake for something else.
public struct InterfaceName: Hashable, Sendable {
    /// The name.
    public let string: String

    /// What is wrong with a name.
    public enum Invalid: Error, Equatable, Sendable {
        /// It has no bytes.
        case empty
        /// It has more than 15 bytes, the kernel's `IFNAMSIZ` less its terminator.
        case tooLong
        /// It begins with a hyphen, as options do.
        case looksLikeOption
        /// It is `.` or `..`, which are folders.
        case reserved
        /// It contains this byte: white space, a control character, `/`, `:`, or `%`, which the kernel would replace by
        /// a number.
        case forbiddenByte(UInt8)
    }

    /// The longest name in bytes.
    public static let maximumLength = 15

    /// Checks `string` and wraps it.
    public init(_ string: String) throws(Invalid) {
        if string.isEmpty { throw .empty }
        if string == "." || string == ".." { throw .reserved }
        if string.utf8.first == UInt8(ascii: "-") { throw .looksLikeOption }
        for byte in string.utf8 {
            switch byte {
            // 0xA0 is white space to the kernel, which reads names as Latin-1.
            case 0...0x20, 0x7F, 0xA0, UInt8(ascii: "/"), UInt8(ascii: ":"), UInt8(ascii: "%"):
                throw .forbiddenByte(byte)
            default: break
            }
        }
        if string.utf8.count > Self.maximumLength { throw .tooLong }
        self.string = string
    }
}

extension InterfaceName: CustomStringConvertible {
    /// The name.
    public var description: String { string }
}

extension InterfaceName: Codable {
    /// Reads a name and checks it again: the other side is not trusted to have done so.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let string = try container.decode(String.self)
        do throws(Invalid) {
            try self.init(string)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an interface name")
        }
    }

    /// Writes the name as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(string)
    }
}

extension InterfaceName.Invalid: CustomStringConvertible {
    /// What is wrong, for the person who typed the name.
    public var description: String {
        switch self {
        case .empty: "an interface name cannot be empty"
        case .tooLong: "an interface name has at most \(InterfaceName.maximumLength) bytes"
        case .looksLikeOption: "an interface name cannot begin with a hyphen"
        case .reserved: "an interface cannot be named . or .."
        case .forbiddenByte: "an interface name has no white space, control characters, '/', ':' or '%'"
        }
    }
}
