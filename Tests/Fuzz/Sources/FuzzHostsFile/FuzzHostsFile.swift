import DNSMessage
import DNSProxy
import FuzzSupport
import Provider

/// The input is a hosts file. A slow reading of it has the same counts, and a proxy that has it answers with what that says: addresses, names of
/// addresses, and what is blocked. It makes no difference in how many pieces the lines come.
@c(LLVMFuzzerTestOneInput)
public func fuzzHostsFile(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        let input = [UInt8](copying: bytes)
        let reference = ReferenceHosts(input, ownName: "box")
        var names = HostNames(ownName: try? DomainName(parsing: "box.example"))
        input.read { names.add(contentsOf: $0) }
        require(names.counts.addresses == reference.addressCount, "as many addresses")
        require(names.counts.blocked == reference.blocked.count, "as many names blocked")
        require(names.counts.ignoredLines == reference.ignoredCount, "as many lines of no use")
        require(inPieces(input).counts == names.counts, "as much in pieces")
        var proxy = DNSProxyProvider()
        let configuration = DNSProxyConfiguration(upstreams: [DNSUpstream(name: "a", transport: .tcp)])
        guard (try? proxy.start(configuration, at: now)) != nil else { return }
        proxy.setHosts(names)
        // A few of them: every input has its own.
        for (name, records) in reference.records.prefix(20) where !reference.blocked.contains(name) {
            for type in [1, 28, 12] as [UInt16] {
                let found = answer(&proxy, name, type)
                let expected = records.filter { $0.type == type }
                require(Set(found) == Set(expected) && found.count == expected.count, "a name has these records")
            }
        }
        for name in reference.blocked.prefix(20) where reference.records[name] == nil && !isSpecial(name) {
            let found = answer(&proxy, name, 1)
            require(found == [ReferenceHosts.Record(type: 1, data: [0, 0, 0, 0])], "a name is blocked")
        }
    }
}

private let now = Instant(nanoseconds: 1_000_000_000)

/// The file line by line, each with its end.
private func inPieces(_ input: [UInt8]) -> HostNames {
    var names = HostNames(ownName: try? DomainName(parsing: "box.example"))
    var start = 0
    while start < input.count {
        let end = input[start...].firstIndex { $0 == 10 || $0 == 13 }.map { $0 + 1 } ?? input.count
        Array(input[start..<end]).read { names.add(linesOf: $0, isStart: start == 0) }
        start = end
    }
    names.finish()
    return names
}

/// True for names that standards say something else about.
private func isSpecial(_ name: String) -> Bool {
    let zones = ["localhost", "invalid", "onion", "test", "local", "alt", "arpa", "use-application-dns.net"]
    return zones.contains { name == $0 || name.hasSuffix(".\($0)") }
}

/// The records that the proxy answers with at once.
private func answer(_ proxy: inout DNSProxyProvider, _ name: String, _ type: UInt16) -> [ReferenceHosts.Record] {
    var query: [UInt8] = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    query += ReferenceHosts.wire(name) + [UInt8(type >> 8), UInt8(type & 255), 0, 1]
    var output = [UInt8](repeating: 0, count: DNSProxyProvider.answerCapacity)
    let decision = query.read { query in
        output.edit { proxy.handle(query: query, from: ClientToken(rawValue: 1), by: .tcp, at: now, into: &$0) }
    }
    guard case .answer(let count) = decision else { fatalError("a name of a hosts file is answered at once: \(name)") }
    var found: [ReferenceHosts.Record] = []
    Array(output[..<count]).read { bytes in
        guard let view = try? DNSMessageView(checking: bytes) else { fatalError("an answer is a message") }
        var records = view.records(in: .answer)
        while let record = records.next() {
            found.append(ReferenceHosts.Record(type: record.type.rawValue, data: [UInt8](copying: record.data)))
        }
    }
    return found
}
