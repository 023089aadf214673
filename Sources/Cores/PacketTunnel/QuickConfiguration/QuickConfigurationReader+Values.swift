internal import ByteAccess
internal import IPPacket
internal import Provider
internal import WireGuard

private typealias Problem = QuickConfigurationError.Problem

extension QuickConfigurationReader {
    /// Reads the value of a key of the interface.
    mutating func setInterface(_ key: QuickConfigurationKey, _ value: RawSpan) throws(QuickConfigurationError.Problem) {
        switch key {
        case .privateKey: configuration.tunnel.privateKey = try value.secretKey()
        case .listenPort: configuration.tunnel.listenPort = UInt16(try value.number(upTo: 65535, .port))
        case .firewallMark: configuration.tunnel.firewallMark = try value.firewallMark()
        case .address:
            try value.forEachItem(.address) { item throws(Problem) in
                configuration.tunnel.addresses.append(try item.interfaceAddress())
            }
        case .dns:
            try value.forEachItem(.resolver) { item throws(Problem) in
                if item.looksLikeAddress {
                    guard let address = try? IPAddress(parsing: item) else { throw .expected(.resolver) }
                    configuration.tunnel.dnsServers.append(address)
                } else {
                    guard HostName.isValid(item) else { throw .expected(.resolver) }
                    configuration.tunnel.searchDomains.append(item)
                }
            }
        case .mtu: configuration.tunnel.mtu = Int(try value.number(in: 68...65535, .mtu))
        case .table: configuration.table = try value.routingTable()
        case .preUp: configuration.hooks.preUp.append(try value.command())
        case .postUp: configuration.hooks.postUp.append(try value.command())
        case .preDown: configuration.hooks.preDown.append(try value.command())
        case .postDown: configuration.hooks.postDown.append(try value.command())
        case .saveConfig:
            guard value.isSpelled("true") || value.isSpelled("false") else { throw .expected(.boolean) }
            configuration.savesConfiguration = value.isSpelled("true")
        case .publicKey, .presharedKey, .allowedIPs, .endpoint, .persistentKeepalive: break
        }
    }

    /// Reads the value of a key of the current peer.
    mutating func setPeer(
        _ key: QuickConfigurationKey, _ value: RawSpan, line: Int
    ) throws(QuickConfigurationError.Problem) {
        switch key {
        case .publicKey:
            guard let bytes = KeyText.decode(value) else { throw .expected(.key) }
            let publicKey = PublicKey(bytes.bytes)
            if publicKey == Self.zeroKey { throw .expected(.peerKey) }
            try claim(publicKey, line: line)
            peer.publicKey = publicKey
        case .presharedKey: peer.presharedKey = try value.secretKey()
        case .allowedIPs:
            try value.forEachItem(.prefix, whiteSpaceSeparates: false) { item throws(Problem) in
                try Self.change(&peer.allowedIPs, item)
            }
        case .endpoint: peer.endpoint = try value.endpoint()
        case .persistentKeepalive:
            let seconds = value.isSpelled("off") ? 0 : UInt16(try value.number(upTo: 65535, .keepalive))
            peer.persistentKeepaliveSeconds = seconds == 0 ? nil : seconds
        default: break
        }
    }

    /// Adds the prefix that `item` spells, with or without a plus; takes it away with a minus.
    private static func change(_ prefixes: inout [IPPrefix], _ item: String) throws(QuickConfigurationError.Problem) {
        let isRemoval = item.hasPrefix("-")
        let text = isRemoval || item.hasPrefix("+") ? item.dropFirst() : item[...]
        guard let prefix = try? IPPrefix(parsing: text) else { throw .expected(.prefix) }
        if !isRemoval {
            prefixes.append(prefix)
        } else if prefixes.contains(prefix) {
            prefixes.removeAll { $0 == prefix }
        } else {
            throw .nothingToRemove(item: nil)
        }
    }
}

extension RawSpan {
    /// The value as text; not for secrets.
    private func text() throws(QuickConfigurationError.Problem) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        for offset in byteOffsets {
            let byte = uint8(at: offset)
            guard byte >= 0x20 && byte != 0x7F || byte.isWhiteSpace else { throw .expected(.plainText) }
            bytes.append(byte)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .expected(.plainText) }
        return text
    }

    /// The value as a key of 32 bytes; nil for zeros, which stand for none.
    fileprivate func secretKey() throws(QuickConfigurationError.Problem) -> SecretKey? {
        guard let memory = KeyText.decode(self) else { throw .expected(.key) }
        let key = SecretKey(memory)
        return key == SecretKey(SecretMemory(byteCount: SecretKey.byteCount)) ? nil : key
    }

    /// The value as a decimal number.
    fileprivate func number(
        in range: ClosedRange<UInt32>, _ expectation: QuickConfigurationError.Expectation
    ) throws(QuickConfigurationError.Problem) -> UInt32 {
        guard let number = digits(from: 0, radix: 10), range.contains(number) else { throw .expected(expectation) }
        return number
    }

    fileprivate func number(
        upTo maximum: UInt32, _ expectation: QuickConfigurationError.Expectation
    ) throws(QuickConfigurationError.Problem) -> UInt32 {
        try number(in: 0...maximum, expectation)
    }

    /// The digits from `start` to the end as a number.
    private func digits(from start: Int, radix: UInt32) -> UInt32? {
        guard start < byteCount else { return nil }
        var number: UInt32 = 0
        for offset in start..<byteCount {
            let byte = uint8(at: offset)
            let digit: UInt8 =
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
                case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
                case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
                default: 255
                }
            let (product, isTooMuch) = number.multipliedReportingOverflow(by: radix)
            let (sum, overflows) = product.addingReportingOverflow(UInt32(digit))
            guard digit < radix, !isTooMuch, !overflows else { return nil }
            number = sum
        }
        return number
    }

    /// The value as a decimal number, or a hexadecimal one behind 0x.
    private func decimalOrHexadecimal() -> UInt32? {
        if byteCount > 2, extracting(0..<2).isSpelled("0x") { return digits(from: 2, radix: 16) }
        return digits(from: 0, radix: 10)
    }

    /// The value as a firewall mark; nil for none.
    fileprivate func firewallMark() throws(QuickConfigurationError.Problem) -> UInt32? {
        if isSpelled("off") { return nil }
        guard let mark = decimalOrHexadecimal() else { throw .expected(.firewallMark) }
        return mark == 0 ? nil : mark
    }

    fileprivate func routingTable() throws(QuickConfigurationError.Problem) -> QuickConfiguration.RoutingTable {
        if isSpelled("off") { return .off }
        if isSpelled("auto") { return .automatic }
        guard let number = decimalOrHexadecimal(), number > 0 else { throw .expected(.table) }
        return .number(number)
    }

    fileprivate func command() throws(QuickConfigurationError.Problem) -> String {
        if isEmpty { throw .expected(.command) }
        return try text()
    }

    fileprivate func endpoint() throws(QuickConfigurationError.Problem) -> EndpointName {
        let text = try text()
        guard let colon = text.lastIndex(of: ":") else { throw .expected(.endpoint) }
        let digits = text[text.index(after: colon)...]
        let isNumber = digits.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isNumber, let port = UInt16(digits), port > 0 else { throw .expected(.endpoint) }
        let host = text[..<colon]
        if host.hasPrefix("[") {
            guard host.hasSuffix("]"), HostName.isScopedIPv6Address(host.dropFirst().dropLast()) else {
                throw .expected(.endpoint)
            }
            return EndpointName(host: String(host.dropFirst().dropLast()), port: port)
        }
        if HostName.isScopedIPv6Address(host) { throw .expected(.bracketsAroundEndpoint) }
        guard HostName.isValid(String(host)) || (try? IPv4Address(parsing: host)) != nil else {
            throw .expected(.endpoint)
        }
        return EndpointName(host: String(host), port: port)
    }

    /// Calls `body` with each item of a list, which has one at least. What it throws gets the number of the item.
    fileprivate func forEachItem(
        _ expectation: QuickConfigurationError.Expectation, whiteSpaceSeparates: Bool = true,
        _ body: (String) throws(QuickConfigurationError.Problem) -> Void
    ) throws(QuickConfigurationError.Problem) {
        // Between commas stands one item or, where white space separates too, several.
        var items: [Substring] = []
        for part in try text().split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(omittingEmptySubsequences: true, whereSeparator: \.isASCIIWhiteSpace)
            items += words.isEmpty || words.count > 1 && !whiteSpaceSeparates ? [""] : words
        }
        for (index, item) in items.enumerated() {
            do throws(QuickConfigurationError.Problem) {
                if item.isEmpty { throw .expected(expectation) }
                try body(String(item))
            } catch {
                throw items.count == 1 ? error : error.numbered(index + 1)
            }
        }
    }
}

extension QuickConfigurationError.Problem {
    /// The problem with the number of the item in its list that has it.
    fileprivate func numbered(_ item: Int) -> Self {
        switch self {
        case .expected(let expectation, _): .expected(expectation, item: item)
        case .nothingToRemove: .nothingToRemove(item: item)
        default: self
        }
    }
}

extension String {
    /// True when the text can be nothing but an address, right or wrong: it has a colon, or digits and dots only.
    fileprivate var looksLikeAddress: Bool {
        utf8.contains(UInt8(ascii: ":"))
            || utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".") }
    }

    /// The text as an address that an interface can have.
    fileprivate func interfaceAddress() throws(QuickConfigurationError.Problem) -> InterfaceAddress {
        guard let address = try? InterfaceAddress(parsing: self), !address.address.isUnspecified,
            !address.address.isMulticast
        else { throw .expected(.address) }
        return address
    }
}

extension Character {
    fileprivate var isASCIIWhiteSpace: Bool { asciiValue?.isWhiteSpace ?? false }
}
