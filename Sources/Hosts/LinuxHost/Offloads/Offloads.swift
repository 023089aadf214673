/// Which of the kernel's offloads are wanted. Each works without the others; one that is wanted and that the kernel lacks, or
/// takes back later, is done without.
public struct Offloads: Equatable, Codable, Sendable {
    /// The TUN device hands over super-packets of up to 60,000 bytes, and takes them.
    public var tun: Bool
    /// Many datagrams to one peer leave by one call (`UDP_SEGMENT`).
    public var udpSegment: Bool
    /// Many datagrams of one sender come in by one call (`UDP_GRO`).
    public var udpGRO: Bool

    /// The offloads to use: all of them unless said otherwise.
    public init(tun: Bool = true, udpSegment: Bool = true, udpGRO: Bool = true) {
        self.tun = tun
        self.udpSegment = udpSegment
        self.udpGRO = udpGRO
    }

    /// No offloads: packets and datagrams one by one.
    public static let none = Offloads(tun: false, udpSegment: false, udpGRO: false)
}

extension Offloads {
    /// The names of the offloads, as configurations spell them.
    public static let names = ["tun", "udpSegment", "udpGRO"]

    /// Why a list of offloads could not be read.
    public enum Invalid: Error, Equatable, Sendable, CustomStringConvertible {
        /// The list has a word that names no offload.
        case unknownName(String)
        /// The list has no words: `none` is what turns all of them off.
        case empty

        /// What is wrong, for the person who wrote the list.
        public var description: String {
            switch self {
            case .unknownName(let name):
                "\"\(name)\" is no offload; there are \(Offloads.names.joined(separator: ", ")), and none"
            case .empty: "no offload is named; none turns all of them off"
            }
        }
    }

    /// Reads a list such as `tun,udpSegment` of those that are wanted, or `none`. Spaces around the names do not matter.
    public init(parsing text: String) throws(Invalid) {
        self = .none
        if Self.trimmed(text[...]) == "none" { return }
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            switch Self.trimmed(word) {
            case "tun": tun = true
            case "udpSegment": udpSegment = true
            case "udpGRO": udpGRO = true
            case "": throw .empty
            case let name: throw .unknownName(String(name))
            }
        }
    }

    private static func trimmed(_ word: Substring) -> Substring {
        var word = word
        while word.first == " " { word.removeFirst() }
        while word.last == " " { word.removeLast() }
        return word
    }
}
