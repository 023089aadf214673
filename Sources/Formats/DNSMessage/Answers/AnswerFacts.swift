public import IPPacket

/// What policy has to know of an answer besides its question.
public struct AnswerFacts: Hashable, Sendable {
    /// The targets of CNAME and DNAME in the answer section, in the order of the message.
    public var aliases: [DomainName] = []
    /// The targets of SVCB and HTTPS in the answer section but the root, which stands for the owner or for no service.
    public var serviceTargets: [DomainName] = []
    /// The addresses of A and AAAA in all sections, in the order of the message.
    public var addresses: [IPAddress] = []
    /// The addresses that SVCB and HTTPS hint at, in all sections, in the order of the message.
    public var hints: [IPAddress] = []

    /// Nothing.
    public init() {}
}

/// Reads of a checked answer what policy has to know. An adapter does it with a library of its own, so that each new answer has been
/// read by two.
public protocol AnswerReader {
    /// Why the answer was not taken.
    associatedtype Failure: Error
    /// Reads an answer that a view has accepted.
    func facts(of answer: borrowing DNSMessageView) throws(Failure) -> AnswerFacts
}

/// The reader that is made of the views themselves.
public struct ViewAnswerReader: AnswerReader {
    /// A reader.
    public init() {}

    /// Reads an answer; it never fails, since the view was checked.
    public func facts(of answer: borrowing DNSMessageView) throws(Never) -> AnswerFacts {
        var facts = AnswerFacts()
        var records = answer.records
        while let record = records.next() {
            if let address = record.address { facts.addresses.append(address) }
            switch record.type {
            case .cname, .dname:
                if record.section == .answer, let target = record.target { facts.aliases.append(DomainName(target)) }
            case .svcb, .https:
                if record.section == .answer, let target = record.target, !target.isRoot {
                    facts.serviceTargets.append(DomainName(target))
                }
                facts.addHints(of: record.serviceParameters)
            default: break
            }
        }
        return facts
    }
}

extension AnswerFacts {
    /// Adds the addresses of `ipv4hint` and `ipv6hint`.
    public mutating func addHints(of parameters: consuming ServiceParameterCursor) {
        while let parameter = parameters.next() {
            for index in 0..<parameter.addressCount { hints.append(parameter.address(at: index)) }
        }
    }
}
