internal import ByteAccess
internal import DNSMessage
internal import IPPacket

/// Writes answers as a client needs them: its ID, its letters, its flags, an OPT record when it sent one, and no more bytes than it
/// can take.
struct AnswerComposer: Sendable {
    /// What clients get instead of what is blocked.
    var blockedAnswer = BlockedAnswer.zero
    /// For how many seconds they may keep that.
    var blockedTimeToLive: UInt32 = 10
    /// How the sources of rules are called, each at the place that its number is.
    var sourceNames = RuleSource.standardNames
    /// How long their connections may be idle, in units of 100 ms.
    var idleTenths: UInt16 = 200
    /// True when clients that tell their network are told for which one the answer is (RFC 7871 §7.2.2).
    var passesClientSubnet = false

    /// For how many seconds clients may keep what standards say about a name.
    static var specialTimeToLive: UInt32 { 3600 }
    /// For how many seconds they may keep what is too old, at most (RFC 8767 §4).
    static var staleTimeToLive: UInt32 { 30 }

    /// How old an answer is.
    enum Age {
        /// It was kept for so many seconds.
        case seconds(UInt32)
        /// It is too old: its TTLs are over.
        case stale
    }

    func edns(
        _ query: borrowing QueryView, _ transport: ClientTransport, _ error: ExtendedError?, scope: UInt8 = 0
    ) -> EDNSFields {
        var edns = EDNSFields(dnssecOK: query.dnssecOK)
        edns.extendedError = error
        // Never by UDP (RFC 7828 §3.2.1).
        if transport.hasKeepalive, query.asksForKeepalive { edns.tcpKeepalive = .timeout(tenthsOfSecond: idleTenths) }
        if transport.isEncrypted, query.asksForPadding { edns.paddingBlock = EDNSFields.answerPaddingBlock }
        if passesClientSubnet, var subnet = query.clientSubnet {
            subnet.scopePrefixLength = scope
            edns.clientSubnet = subnet
        }
        return edns
    }

    func limit(_ query: borrowing QueryView, _ transport: ClientTransport) -> Int {
        transport == .udp ? query.answerLimit() : DNSMessageView.maximumByteCount
    }

    /// An answer without records.
    func failure(
        _ code: ResponseCode, _ error: ExtendedErrorCode?, to query: borrowing QueryView, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) -> Int {
        let edns = edns(query, transport, error.map { ExtendedError($0) })
        return Self.orNothing {
            () throws(DNSMessageError) in
            try query.echo.writeFailure(code, edns: edns, limit: limit(query, transport), into: &output)
        }
    }

    /// What a client gets for a name that a rule of a source blocks.
    func blocked(
        _ source: RuleSource, to query: borrowing QueryView, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) -> Int {
        let place = Int(source.rawValue)
        let name = sourceNames.indices.contains(place) ? sourceNames[place] : ""
        let edns = edns(query, transport, ExtendedError(.blocked, text: name))
        let limit = limit(query, transport)
        return Self.orNothing {
            () throws(DNSMessageError) in
            switch blockedAnswer {
            case .zero:
                let addresses: InlineArray<2, IPAddress> = [.v4(.unspecified), .v6(.unspecified)]
                return try query.echo.writeAddresses(
                    addresses.span, timeToLive: blockedTimeToLive, edns: edns, limit: limit, into: &output)
            case .nxdomain:
                return try query.echo.writeNegative(
                    .nameError, timeToLive: blockedTimeToLive, edns: edns, limit: limit, into: &output)
            case .nodata:
                return try query.echo.writeNegative(
                    .noError, timeToLive: blockedTimeToLive, edns: edns, limit: limit, into: &output)
            case .refused:
                return try query.echo.writeFailure(.refused, edns: edns, limit: limit, into: &output)
            }
        }
    }

    /// That there is no such name, or nothing of the type, with an SOA record.
    func negative(
        _ code: ResponseCode, _ error: ExtendedError? = nil, timeToLive: UInt32, zoneLabelCount: Int? = nil,
        to query: borrowing QueryView, by transport: ClientTransport, into output: inout MutableRawSpan
    ) -> Int {
        let edns = edns(query, transport, error)
        return Self.orNothing {
            () throws(DNSMessageError) in
            try query.echo.writeNegative(
                code, timeToLive: timeToLive, zoneLabelCount: zoneLabelCount, edns: edns,
                limit: limit(query, transport), into: &output)
        }
    }

    /// The machine itself.
    func loopback(
        to query: borrowing QueryView, by transport: ClientTransport, into output: inout MutableRawSpan
    ) -> Int {
        let own: InlineArray<2, IPAddress> = [.v4(IPv4Address(127, 0, 0, 1)), .v6(.loopback)]
        return addresses(own.span, timeToLive: Self.specialTimeToLive, to: query, by: transport, into: &output)
    }

    /// Those of the addresses that the query asks for.
    func addresses(
        _ addresses: Span<IPAddress>, timeToLive: UInt32, to query: borrowing QueryView, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) -> Int {
        let edns = edns(query, transport, nil)
        return Self.orNothing {
            () throws(DNSMessageError) in
            try query.echo.writeAddresses(
                addresses, timeToLive: timeToLive, edns: edns, limit: limit(query, transport), into: &output)
        }
    }

    /// The short answer to ANY (RFC 8482 §4.2).
    func minimalAny(
        to query: borrowing QueryView, by transport: ClientTransport, into output: inout MutableRawSpan
    ) -> Int {
        let edns = edns(query, transport, nil)
        return Self.orNothing {
            () throws(DNSMessageError) in
            try query.echo.writeMinimalAny(
                timeToLive: Self.specialTimeToLive, edns: edns, limit: limit(query, transport), into: &output)
        }
    }

    /// Makes a client's of an answer at the start of `output`, which has no OPT record and asks the same.
    ///
    /// - Parameters:
    ///   - count: The answer's length in bytes.
    ///   - age: How old it is.
    ///   - scope: For how many bits of the client's network it is; 0 for all networks.
    func relay(
        count: Int, age: Age, scope: UInt8 = 0, to query: borrowing QueryView, by transport: ClientTransport,
        into output: inout MutableRawSpan
    ) -> Int {
        var edns = edns(query, transport, nil, scope: scope)
        do throws(DNSMessageError) {
            let stored = MessageEditing.flags(of: output)
            var flags = query.echo.answerFlags(stored.responseCode)
            // Only who knows the bit gets to see it (RFC 6840 §5.7 and §5.8).
            if stored.contains(.authenticData), query.understandsAuthenticData, case .seconds = age {
                flags.insert(.authenticData)
            }
            if stored.contains(.truncated) { flags.insert(.truncated) }
            edns.extendedError = RewritingMark.error(in: stored)
            MessageEditing.setFlags(flags, in: &output)
            MessageEditing.setID(query.header.id, in: &output)
            _ = try MessageEditing.copyQuestionCase(from: query.question, in: &output)
            switch age {
            case .seconds(0): break
            case .seconds(let seconds): try MessageEditing.age(&output, by: seconds)
            case .stale:
                try MessageEditing.boundTimesToLive(of: &output, to: 0...Self.staleTimeToLive)
                edns.extendedError = ExtendedError(
                    stored.responseCode == .nameError ? .staleNXDomainAnswer : .staleAnswer)
            }
            return try MessageEditing.replaceOPT(
                in: &output, count: count, with: query.edns == nil ? nil : edns, limit: limit(query, transport))
        } catch {
            return failure(.serverFailure, .invalidData, to: query, by: transport, into: &output)
        }
    }

    /// What `write` returns. It cannot throw: a question and an OPT record fit into the smallest answer.
    static func orNothing(_ write: () throws(DNSMessageError) -> Int) -> Int {
        do {
            return try write()
        } catch {
            preconditionFailure("an answer of a question and an OPT record that does not fit")
        }
    }
}
