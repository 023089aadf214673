internal import ByteAccess
internal import IPPacket
internal import Provider
internal import WireGuard

extension QuickConfiguration {
    /// Reads a wg-quick file: UTF-8, lines that end with a line feed, with or without a carriage return before it.
    ///
    /// It is stricter than wg-quick and wg where they take silently what makes no sense: keys that are given twice, two
    /// sections for one peer, empty values, white space within a value, numbers out of their range,
    /// the names of ports and routing tables, IPv6 endpoints without brackets.
    ///
    /// - Parameter bytes: The file. Its secret keys are decoded into memory that is wiped; the bytes themselves are the
    ///   caller's to wipe.
    /// - Throws: All that is wrong with the file.
    public init(reading bytes: RawSpan) throws(QuickConfigurationErrors) {
        var reader = QuickConfigurationReader()
        reader.read(bytes)
        // What was decoded went through registers and maybe the stack.
        defer { scrubStack() }
        self = try reader.finish()
    }
}

/// Reads a wg-quick file line by line.
struct QuickConfigurationReader {
    /// What the lines belong to.
    private enum Place {
        case beforeSections, section(QuickConfigurationSection)
        /// A section whose name is unknown: its lines are passed over.
        case unknown
    }

    var configuration = QuickConfiguration()
    /// The peer that is being read, under the key of zeros until it has one of its own.
    var peer = PeerConfiguration(publicKey: zeroKey)
    /// The line of the head of the peer's section; nil outside of one.
    private var peerLine: Int?
    private var place = Place.beforeSections
    /// The lines that the keys of the interface and of the current peer were on first.
    private var interfaceLines: [QuickConfigurationKey: Int] = [:]
    private var peerLines: [QuickConfigurationKey: Int] = [:]
    /// The lines that public keys were on.
    private var knownPeers: [PublicKey: Int] = [:]
    private var errors: [QuickConfigurationError] = []
    private var errorCount = 0

    /// Reads all lines of a file.
    mutating func read(_ bytes: RawSpan) {
        var start = bytes.startsWithByteOrderMark ? 3 : 0
        var number = 0
        while start < bytes.byteCount {
            let end = bytes.firstOffset(of: UInt8(ascii: "\n"), from: start) ?? bytes.byteCount
            number += 1
            readLine(bytes.extracting(start..<end), number: number)
            start = end + 1
        }
    }

    /// The configuration, once all lines are read.
    consuming func finish() throws(QuickConfigurationErrors) -> QuickConfiguration {
        finishPeer()
        let tunnel = configuration.tunnel
        if let mtu = tunnel.mtu, mtu < 1280, let line = interfaceLines[.mtu],
            tunnel.addresses.contains(where: { $0.address.version == .v6 })
        {
            note(line, .mtu, .expected(.mtuForIPv6))
        }
        guard errors.isEmpty else {
            // What was found at the end belongs to lines before.
            let sorted = errors.enumerated().sorted { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }
            throw QuickConfigurationErrors(errors: sorted.map(\.element), omittedCount: errorCount - errors.count)
        }
        return configuration
    }

    private mutating func readLine(_ line: RawSpan, number: Int) {
        let comment = line.firstOffset(of: UInt8(ascii: "#"), from: 0) ?? line.byteCount
        let content = line.extracting(0..<comment).trimmed()
        if content.isEmpty { return }
        if content.uint8(at: 0) == UInt8(ascii: "[") {
            enterSection(content, number)
            return
        }
        guard case .section(let section) = place else {
            if case .beforeSections = place {
                note(number, nil, .outsideOfSections)
                place = .unknown
            }
            return
        }
        guard let equals = content.firstOffset(of: UInt8(ascii: "="), from: 0), equals > 0 else {
            note(number, nil, .notAKey)
            return
        }
        let name = content.extracting(0..<equals).trimmed()
        guard let key = QuickConfigurationKey.allCases.first(where: { name.isSpelled($0.rawValue) }) else {
            note(number, nil, .unknownKey(in: section, name.misspelling(of: section.keys.map(\.rawValue))))
            return
        }
        guard key.section == section else {
            note(number, key, .wrongSection(section))
            return
        }
        if let first = section == .interface ? interfaceLines[key] : peerLines[key] {
            if !key.isRepeatable {
                note(number, key, .repeated(firstLine: first))
                return
            }
        } else if section == .interface {
            interfaceLines[key] = number
        } else {
            peerLines[key] = number
        }
        let value = content.extracting(equals + 1..<content.byteCount).trimmed()
        do throws(QuickConfigurationError.Problem) {
            switch section {
            case .interface: try setInterface(key, value)
            case .peer: try setPeer(key, value, line: number)
            }
        } catch {
            note(number, key, error)
        }
    }

    private mutating func enterSection(_ head: RawSpan, _ number: Int) {
        finishPeer()
        let known = QuickConfigurationSection.allCases.first { head.isSpelled("[\($0.rawValue)]") }
        guard let known else {
            let hasEnd = head.byteCount > 2 && head.uint8(at: head.byteCount - 1) == UInt8(ascii: "]")
            let name = head.extracting(1..<head.byteCount - (hasEnd ? 1 : 0)).trimmed()
            let names = QuickConfigurationSection.allCases.map(\.rawValue)
            note(number, nil, .unknownSection(name.misspelling(of: names)))
            place = .unknown
            return
        }
        place = .section(known)
        if known == .peer {
            peer = PeerConfiguration(publicKey: Self.zeroKey)
            peerLine = number
            peerLines = [:]
        }
    }

    private mutating func finishPeer() {
        guard let line = peerLine else { return }
        peerLine = nil
        if peer.publicKey != Self.zeroKey {
            configuration.tunnel.peers.append(peer)
        } else if peerLines[.publicKey] == nil {
            note(line, .publicKey, .missing)
        }
    }

    /// The key that nobody has.
    static var zeroKey: PublicKey {
        let zeros: InlineArray<4, UInt64> = [0, 0, 0, 0]
        return PublicKey(zeros.span.octets)
    }

    /// Makes sure that a public key names one peer only.
    mutating func claim(_ key: PublicKey, line: Int) throws(QuickConfigurationError.Problem) {
        if let first = knownPeers[key] { throw .samePeer(line: first) }
        knownPeers[key] = line
    }

    private mutating func note(_ line: Int, _ key: QuickConfigurationKey?, _ problem: QuickConfigurationError.Problem) {
        errorCount += 1
        if errors.count < QuickConfigurationErrors.maximumCount {
            errors.append(QuickConfigurationError(line: line, key: key, problem: problem))
        }
    }
}

extension RawSpan {
    /// True when the text begins with U+FEFF, which some editors put before UTF-8.
    fileprivate var startsWithByteOrderMark: Bool {
        byteCount >= 3 && uint8(at: 0) == 0xEF && uint8(at: 1) == 0xBB && uint8(at: 2) == 0xBF
    }

    /// Where `byte` stands first at or behind `start`.
    func firstOffset(of byte: UInt8, from start: Int) -> Int? {
        var offset = start
        while offset < byteCount {
            if uint8(at: offset) == byte { return offset }
            offset += 1
        }
        return nil
    }

    /// The bytes without white space at their ends.
    @_lifetime(copy self)
    func trimmed() -> RawSpan {
        var (start, end) = (0, byteCount)
        while start < end, uint8(at: start).isWhiteSpace { start += 1 }
        while end > start, uint8(at: end - 1).isWhiteSpace { end -= 1 }
        return extracting(start..<end)
    }

    /// The known word that the bytes are close to, with them; nil when none is close, and the bytes may be anything.
    fileprivate func misspelling(of known: [String]) -> QuickConfigurationError.Misspelling? {
        guard byteCount <= 40 else { return nil }
        var written = ""
        for offset in byteOffsets {
            let byte = uint8(at: offset)
            guard byte >= 0x20, byte < 0x7F else { return nil }
            written.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return Spelling.nearest(to: written, among: known).map { .init(written: written, nearest: $0) }
    }
}

extension UInt8 {
    /// True for the white space of ASCII.
    var isWhiteSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
