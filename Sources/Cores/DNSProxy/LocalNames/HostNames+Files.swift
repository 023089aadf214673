internal import ByteAccess
internal import DNSMessage
internal import IPPacket

extension HostNames {
    /// Adds a file. Lines end in LF, CR or both; what is behind a `#` is not read, and neither are lines that make no sense.
    public mutating func add(contentsOf file: RawSpan) {
        add(linesOf: file, isStart: true)
        finish()
    }

    /// Adds whole lines of a file. What they block is blocked after `finish()`.
    ///
    /// - Parameter isStart: True for the first of the file, which may begin with a byte order mark.
    public mutating func add(linesOf piece: RawSpan, isStart: Bool) {
        var lines = HostsLines(piece, isStart: isStart)
        while let line = lines.next() {
            switch add(line) {
            case .useful, .empty: break
            case .useless: counts.ignoredLines += 1
            }
        }
    }

    /// Has room for a file of so many bytes, whatever of it is a name.
    public mutating func reserve(byteCount: Int) { blocked.reserve(byteCount: byteCount) }

    /// Makes what was added findable.
    public mutating func finish() {
        blocked.index()
        counts.blocked = blocked.count
    }

    private enum LineKind {
        case empty, useful, useless
    }

    private mutating func add(_ line: RawSpan) -> LineKind {
        var words = HostsWords(line)
        guard let first = words.next() else { return .empty }
        guard let address = Self.address(first) else { return .useless }
        var (isFirst, isUseful) = (true, false)
        while let word = words.next() {
            guard let name = Self.name(word) else { continue }
            if add(name, address, isFirst: isFirst) { isUseful = true }
            isFirst = false
        }
        return isUseful ? .useful : .useless
    }

    /// - Returns: False when a line of this alone is of no use.
    private mutating func add(_ name: DomainName, _ address: IPAddress, isFirst: Bool) -> Bool {
        let labelCount = name.view.labelCount
        if address.isUnspecified || address.isLoopbackOfLists && !isOfTheMachine(name) {
            // Nobody means to block all of a top-level domain.
            guard labelCount > 1 else { return false }
            blocked.append(name)
            return true
        }
        // Standards say what the machine itself is called.
        if !Self.localhost.holds(name) {
            guard add(ResourceRecord(owner: name, address: address, timeToLive: Self.timeToLive)) else { return true }
            counts.addresses += 1
        }
        if isFirst { addReverse(name, address) }
        return true
    }

    /// Adds the name of an address, unless it has one.
    private mutating func addReverse(_ name: DomainName, _ address: IPAddress) {
        let reverse = ReverseName.name(of: address)
        let lowercased = DomainName(reverse.view, lowercased: true)
        guard names.find(CanonicalName(lowercased: lowercased.bytes)) == nil else { return }
        _ = add(ResourceRecord(owner: reverse, pointer: name, timeToLive: Self.timeToLive))
    }

    private mutating func add(_ record: ResourceRecord) -> Bool {
        do throws(LocalRecordError) {
            try names.add(record)
            return true
        } catch {
            // Twice is as good as once.
            return false
        }
    }

    // MARK: Names

    private static let localhost = NameSuffixes(["localhost"])
    /// What is never delegated, or by convention is for the inside: lists of what is to be blocked have no names in there.
    private static let inside = NameSuffixes(["localdomain", "test", "internal", "local", "home.arpa", "lan"])

    /// True when a name at 127.0.0.1 or ::1 is meant to be the machine itself.
    private func isOfTheMachine(_ name: DomainName) -> Bool {
        let view = name.view
        if view.labelCount == 1 || Self.localhost.holds(name) || Self.inside.holds(name) { return true }
        guard let ownName else { return false }
        return name.firstLabelEquals(ownName)
    }

    private static func address(_ word: RawSpan) -> IPAddress? {
        // The longest text of an address has 45 characters.
        guard word.byteCount <= 45 else { return nil }
        return try? IPAddress(parsingText: word)
    }

    /// The name that a word spells: letters, digits, hyphens and underscores between dots. An address is none.
    private static func name(_ word: RawSpan) -> DomainName? {
        guard word.byteCount <= 254 else { return nil }
        for offset in word.byteOffsets {
            switch word.uint8(at: offset) {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                break
            default: return nil
            }
        }
        let text = String(decoding: [UInt8](copying: word), as: UTF8.self)
        guard address(word) == nil, let name = try? DomainName(parsing: text), name != DomainName() else { return nil }
        return name
    }
}

/// Domains, to ask whether a name is one of them or below.
private struct NameSuffixes: Sendable {
    private let table: NameTable<Bool>

    init(_ names: [String]) {
        table = NameTable(names.compactMap { text in (try? DomainName(parsing: text)).map { ($0, true) } })
    }

    func holds(_ name: DomainName) -> Bool {
        let lowercased = DomainName(name.view, lowercased: true)
        return table.longestMatch(of: CanonicalName(lowercased: lowercased.bytes)) != nil
    }
}

extension DomainName {
    fileprivate func firstLabelEquals(_ other: DomainName) -> Bool {
        let (own, others) = (DomainName(view, lowercased: true), DomainName(other.view, lowercased: true))
        let (name, otherName) = (CanonicalName(lowercased: own.bytes), CanonicalName(lowercased: others.bytes))
        guard name.labelCount > 0, otherName.labelCount > 0 else { return false }
        return name.label(0).hasSameBytes(as: otherName.label(0))
    }
}

extension ResourceRecord {
    /// A record of an address.
    fileprivate init(owner: DomainName, address: IPAddress, timeToLive: UInt32) {
        var data = [UInt8](repeating: 0, count: address.bitWidth / 8)
        var span = data.mutableSpan
        var octets = span.mutableOctets
        octets.store(address, at: 0)
        self.init(owner: owner, type: address.version == .v4 ? .a : .aaaa, timeToLive: timeToLive, data: data)
    }

    /// A record of the name of an address.
    fileprivate init(owner: DomainName, pointer: DomainName, timeToLive: UInt32) {
        self.init(owner: owner, type: .ptr, timeToLive: timeToLive, data: [UInt8](copying: pointer.bytes))
    }
}

extension IPAddress {
    /// True for the loopback addresses that lists of what is to be blocked use.
    fileprivate var isLoopbackOfLists: Bool {
        switch self {
        case .v4(let address): address == IPv4Address(127, 0, 0, 1)
        case .v6(let address): address == .loopback
        }
    }
}
