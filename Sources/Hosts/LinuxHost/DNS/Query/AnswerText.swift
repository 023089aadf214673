internal import ByteAccess
internal import DNSMessage
internal import DNSProxy
internal import IPPacket
internal import LDNSMessage
internal import Provider

/// An answer in the form that dig and drill have made usual.
struct AnswerText {
    /// The answer.
    let message: [UInt8]
    /// How long it took.
    let elapsed: Interval
    /// What it came by.
    let transport: ExchangeTransport
    /// Who was asked.
    let upstream: DNSUpstreamConfiguration

    /// The lines.
    var text: String {
        var lines = body.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        // What ldns says at the end about time and place is not known to it.
        let unknown = [";; Query time:", ";; SERVER:", ";; WHEN:", ";; MSG SIZE"]
        lines.removeAll { line in unknown.contains { line.hasPrefix($0) } }
        // Each byte of padding is a zero.
        for index in lines.indices where lines[index].hasPrefix("; PADDING:") { lines[index] = "; PADDING" }
        while lines.last?.isEmpty ?? false { lines.removeLast() }
        let tenths = elapsed.nanoseconds / 100_000
        lines += [
            "", ";; Query time: \(tenths / 10).\(tenths % 10) ms", ";; Server: \(server) (\(transportName))",
            ";; Message size: \(message.count) bytes",
        ]
        return lines.joined(separator: "\n") + "\n"
    }

    private var body: String {
        guard let view = try? DNSMessageView(checking: message.span.octets) else { return "" }
        do throws(LDNSError) {
            let packet = try LDNSPacket(view)
            return try packet.text
        } catch {
            return PlainAnswerText.text(of: view)
        }
    }

    private var server: String {
        let host =
            switch upstream.host {
            case .name(let name): name
            case .address(.v4(let address)): "\(address)"
            case .address(.v6(let address)): "[\(address)]"
            }
        return "\(host):\(upstream.port)"
    }

    private var transportName: String {
        switch transport {
        case .udp: "UDP"
        case .tcp: "TCP"
        case .tls: "TLS"
        case .https: "HTTPS"
        }
    }
}

/// Answers that ldns does not take, with all data in the form for unknown types (RFC 3597 §5).
enum PlainAnswerText {
    /// The lines of header, question and sections.
    static func text(of view: borrowing DNSMessageView) -> String {
        let header = view.header
        var text = ";; ->>HEADER<<- opcode: \(header.flags.opcode.rawValue), rcode: \(view.responseCode.rawValue), "
        text += "id: \(header.id)\n;; flags:"
        let names: [(DNSFlags, String)] = [
            (.response, "qr"), (.authoritativeAnswer, "aa"), (.truncated, "tc"), (.recursionDesired, "rd"),
            (.recursionAvailable, "ra"), (.authenticData, "ad"), (.checkingDisabled, "cd"),
        ]
        for (flag, name) in names where header.flags.contains(flag) { text += " \(name)" }
        text += "\n;; QUESTION SECTION:\n"
        if let question = view.question {
            text +=
                ";; \(question.name.presentation)\tCLASS\(question.recordClass.rawValue)\tTYPE\(question.type.rawValue)\n"
        }
        for section in MessageSection.allCases {
            text += "\n;; \("\(section)".uppercased()) SECTION:\n"
            var records = view.records(in: section)
            while let record = records.next() {
                if record.type == .opt { continue }
                text += "\(record.owner.presentation)\t\(record.timeToLive)\tCLASS\(record.recordClass.rawValue)"
                text += "\tTYPE\(record.type.rawValue)\t\\# \(record.data.byteCount) "
                for offset in record.data.byteOffsets { text += hexadecimal(record.data.uint8(at: offset)) }
                text += "\n"
            }
        }
        return text
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16)
        return byte < 16 ? "0\(digits)" : digits
    }
}
