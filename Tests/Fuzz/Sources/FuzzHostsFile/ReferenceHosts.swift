import Glibc

/// A hosts file read the slow way: texts in dictionaries, and addresses by the C library.
struct ReferenceHosts {
    /// A record: its type's number and its data.
    struct Record: Hashable {
        var type: UInt16
        var data: [UInt8]
    }

    /// The records of names, in lower case and without a dot at the end.
    private(set) var records: [String: [Record]] = [:]
    /// Names that are blocked.
    private(set) var blocked: Set<String> = []
    /// Addresses of names.
    private(set) var addressCount = 0
    /// Lines that are of no use.
    private(set) var ignoredCount = 0
    private let ownName: String

    init(_ file: [UInt8], ownName: String) {
        self.ownName = ownName
        var file = file[...]
        if file.starts(with: [0xEF, 0xBB, 0xBF]) { file = file.dropFirst(3) }
        for line in file.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let words = line.prefix { $0 != UInt8(ascii: "#") }.split { $0 == 32 || (9...13).contains($0) }
            guard let first = words.first else { continue }
            if !add(Self.address(first), words.dropFirst().compactMap(Self.name)) { ignoredCount += 1 }
        }
    }

    private mutating func add(_ address: [UInt8]?, _ names: [String]) -> Bool {
        guard let address else { return false }
        let blocks = !address.contains { $0 != 0 }
        let mayBlock = blocks || address == [127, 0, 0, 1] || address == [UInt8](repeating: 0, count: 15) + [1]
        var isUseful = false
        for (index, name) in names.enumerated() {
            let lowercased = name.lowercased()
            if blocks || mayBlock && !isOfTheMachine(lowercased) {
                if lowercased.contains(".") {
                    blocked.insert(lowercased)
                    isUseful = true
                }
                continue
            }
            isUseful = true
            let record = Record(type: address.count == 4 ? 1 : 28, data: address)
            if !Self.isIn(lowercased, ["localhost"]) {
                if records[lowercased]?.contains(record) == true { continue }
                records[lowercased, default: []].append(record)
                addressCount += 1
            }
            let reverse = Self.reverse(of: address)
            if index == 0, records[reverse] == nil { records[reverse] = [Record(type: 12, data: Self.wire(name))] }
        }
        return isUseful
    }

    private func isOfTheMachine(_ name: String) -> Bool {
        !name.contains(".") || name.split(separator: ".")[0] == ownName
            || Self.isIn(name, ["localhost", "localdomain", "test", "internal", "local", "home.arpa", "lan"])
    }

    private static func isIn(_ name: String, _ domains: [String]) -> Bool {
        domains.contains { name == $0 || name.hasSuffix(".\($0)") }
    }

    /// The octets of an address; nil when the word is none.
    static func address(_ word: some Sequence<UInt8>) -> [UInt8]? {
        let text = word.map { CChar(bitPattern: $0) }
        guard !text.contains(0) else { return nil }
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var octets = [UInt8](repeating: 0, count: count)
            // The text ends in a zero, and there is room for an address of the family.
            if unsafe inet_pton(family, text + [0], &octets) == 1 { return octets }
        }
        return nil
    }

    /// The name that a word spells, without a dot at its end; nil when it is none.
    private static func name(_ word: ArraySlice<UInt8>) -> String? {
        let allowed = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.".utf8)
        guard word.allSatisfy(allowed.contains), address(word) == nil else { return nil }
        var text = String(decoding: word, as: UTF8.self)
        if text.hasSuffix(".") { text.removeLast() }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        // On the wire a label has an octet in front, and the root one behind.
        guard labels.allSatisfy({ 1...63 ~= $0.utf8.count }), text.utf8.count + 2 <= 255 else { return nil }
        return text
    }

    /// A name on the wire, in the letters that it has.
    static func wire(_ name: String) -> [UInt8] {
        name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    /// The name of an address.
    static func reverse(of address: [UInt8]) -> String {
        if address.count == 4 { return address.reversed().map { "\($0)" }.joined(separator: ".") + ".in-addr.arpa" }
        let digits = address.flatMap { [$0 >> 4, $0 & 15] }
        return digits.reversed().map { String($0, radix: 16) }.joined(separator: ".") + ".ip6.arpa"
    }
}
