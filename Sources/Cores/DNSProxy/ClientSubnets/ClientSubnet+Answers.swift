internal import DNSMessage

extension QueryView {
    /// What the client says about its network, when it says anything.
    var clientSubnet: ClientSubnet? {
        // It was checked with the query.
        (try? edns?.clientSubnet) ?? nil
    }
}

extension EDNSView {
    /// SCOPE PREFIX-LENGTH; nil when there is no subnet in order.
    var scopePrefixLength: UInt8? { ((try? clientSubnet) ?? nil)?.scopePrefixLength }
}

extension ClientSubnet {
    /// True when the client wants nothing told about itself (RFC 7871 §7.1.2).
    var isAnonymous: Bool { sourcePrefixLength == 0 }

    /// True when an answer may be one to a query with this subnet: it repeats what it was asked for, or says nothing (RFC 7871 §7.3).
    func isRepeated(in answer: borrowing DNSMessageView) -> Bool {
        guard let edns = answer.edns else { return true }
        do throws(DNSMessageError) {
            guard let repeated = try edns.clientSubnet else { return true }
            guard repeated.sourcePrefixLength == sourcePrefixLength else { return false }
            return isAnonymous || repeated.address == address
        } catch {
            return false
        }
    }
}
