internal import DNSMessage
internal import DNSProxy
internal import JSON5
internal import LDNSMessage

extension ConfigurationReader {
    /// Reads the keys of `dns` about names that the proxy knows by itself, or has its own mind about.
    static func localNames(_ object: inout ConfigurationObject, _ dns: inout DNSConfiguration) {
        var names = LocalNames()
        let records = object.field("records")?.list { field in
            localRecord(field, &names).map { (field, $0) }
        }
        for (field, record) in records ?? [] where record.type == .cname && names.isEndless(from: record.owner) {
            field.note(.conflict("leads round in a circle"))
        }
        dns.records = (records ?? []).map(\.1)
        dns.hostsFiles = object.field("hostsFile")?.readableFiles() ?? []
        dns.rebindingAllowed = object.field("rebindingAllow")?.set { $0.domain() } ?? []
        dns.privateRelay = object.field("privateRelay")?.choice(DNSConfiguration.PrivateRelay.self) ?? dns.privateRelay
        dns.singleLabels = object.field("singleLabels")?.choice(DNSConfiguration.SingleLabels.self) ?? dns.singleLabels
    }

    /// Reads a record in the form of zone files, and adds it to those before it.
    private static func localRecord(_ field: ConfigurationField, _ names: inout LocalNames) -> ResourceRecord? {
        let expectation = "a record such as \"nas.example 300 IN A 192.0.2.9\""
        guard case .string(let text) = field.value.content else {
            field.note(.expected(expectation))
            return nil
        }
        let record: ResourceRecord
        do throws(LDNSError) {
            // A blank at the beginning would stand for the owner of the record before.
            record = try ResourceRecord(
                parsing: String(text.drop { $0 == " " || $0 == "\t" }), defaultTimeToLive: 300)
        } catch {
            field.note(.expected("\(expectation); \(error.reason)"))
            return nil
        }
        guard record.owner != DomainName() else {
            field.note(.expected(expectation))
            return nil
        }
        do throws(LocalRecordError) {
            try names.add(record)
            return record
        } catch {
            field.note(.conflict("\(error)"))
            return nil
        }
    }
}

extension ConfigurationField {
    /// The path of a file, or a list of them, that exist and hold no secrets.
    fileprivate func readableFiles() -> [String]? {
        if case .array = value.content { return set { $0.readableFile() } }
        return readableFile().map { [$0] }
    }
}

extension LDNSError {
    /// Why a text is no record, in words.
    fileprivate var reason: String {
        switch self {
        case .refused(let status): "ldns says: \(status)"
        case .unreadableType, .malformed: "its data is not that of its type"
        case .notOneLine: "it is more than one line"
        case .outOfMemory: "there is no memory"
        }
    }
}
