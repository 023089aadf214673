import ByteAccess
import DNSMessage
import LDNSMessage
import TestSupport

extension [UInt8] {
    /// The two bytes at an offset as a number.
    func number(at offset: Int) -> UInt16 { UInt16(self[offset]) << 8 | UInt16(self[offset + 1]) }
}

/// The bytes of a number.
func bytes(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }
/// The bytes of a number.
func bytes(_ number: UInt32) -> [UInt8] { bytes(UInt16(number >> 16)) + bytes(UInt16(truncatingIfNeeded: number)) }

/// A name on the wire, letters as they are: the tests' own encoding, label by label.
func wire(_ name: String) -> [UInt8] {
    name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
}

/// A query, octet by octet.
func query(
    _ name: String, _ type: RecordType = .a, id: UInt16 = 0xABCD, flags: UInt16 = 0x0100, recordClass: UInt16 = 1,
    opt: [UInt8]? = nil
) -> [UInt8] {
    bytes(id) + bytes(flags) + [0, 1, 0, 0, 0, 0, 0, opt == nil ? 0 : 1] + wire(name) + bytes(type.rawValue)
        + bytes(recordClass) + (opt ?? [])
}

/// An OPT record.
func opt(_ options: [UInt8] = [], dnssecOK: Bool = false, size: UInt16 = 1232, version: UInt8 = 0) -> [UInt8] {
    [0, 0, 41] + bytes(size) + [0, version, dnssecOK ? 0x80 : 0, 0] + bytes(UInt16(options.count)) + options
}

/// An EDNS option.
func option(_ code: UInt16, _ value: [UInt8] = []) -> [UInt8] { bytes(code) + bytes(UInt16(value.count)) + value }

/// A record, its owner spelled in full unless it is empty, which stands for the question's name.
func record(_ type: RecordType, owner: String = "", ttl: UInt32 = 300, _ data: [UInt8]) -> [UInt8] {
    (owner.isEmpty ? [0xC0, 0x0C] : wire(owner)) + bytes(type.rawValue) + [0, 1] + bytes(ttl)
        + bytes(UInt16(data.count)) + data
}

/// An SOA record of a zone.
func soa(_ zone: String, ttl: UInt32, minimum: UInt32) -> [UInt8] {
    record(
        .soa, owner: zone, ttl: ttl,
        wire("ns." + zone) + wire("h." + zone) + [UInt8](repeating: 0, count: 16) + bytes(minimum)
    )
}

/// What a server answers to a query with these records: its ID and question, octet by octet.
func reply(
    to query: [UInt8], flags: UInt16 = 0x8180, _ answers: [[UInt8]] = [], authority: [[UInt8]] = [],
    additional: [[UInt8]] = []
) -> [UInt8] {
    var end = 12
    while query[end] != 0 { end += Int(query[end]) + 1 }
    return Array(query[0..<2]) + bytes(flags) + [0, 1] + bytes(UInt16(answers.count)) + bytes(UInt16(authority.count))
        + bytes(UInt16(additional.count)) + Array(query[12..<end + 5])
        + (answers + authority + additional).flatMap { $0 }
}

/// What a test wants to know of an answer: read by the view, and by ldns for comparison.
struct Answer: Equatable {
    struct Record: Equatable {
        var owner: String
        var type: RecordType
        var ttl: UInt32
        var data: [UInt8]
        var section: MessageSection
    }

    let bytes: [UInt8]
    var id: UInt16
    var flags: DNSFlags
    var code: ResponseCode
    var question: [UInt8]
    var records: [Record] = []
    var hasOPT: Bool
    var dnssecOK = false
    var error: ExtendedErrorCode?
    var keepalive: TCPKeepalive?

    init(_ bytes: [UInt8]) throws {
        let view = try DNSMessageView(checking: bytes.span.octets)
        // ldns has to find the same in it.
        guard try LDNSAnswerReader().facts(of: view) == ViewAnswerReader().facts(of: view) else { throw Absent() }
        self.bytes = bytes
        id = view.header.id
        flags = view.header.flags
        code = view.responseCode
        question = []
        if let asked = view.question {
            question = Array(view.bytes.extracting(12..<asked.layout.endOffset))
        }
        hasOPT = view.edns != nil
        if let edns = view.edns {
            dnssecOK = edns.dnssecOK
            error = edns.extendedError?.code
            keepalive = edns.tcpKeepalive
        }
        var cursor = view.records
        while let record = cursor.next() {
            if record.type == .opt { continue }
            records.append(
                Record(
                    owner: record.owner.presentation, type: record.type, ttl: record.timeToLive,
                    data: Array(record.data), section: record.section))
        }
    }

    /// The data of the records of a type in the answer section.
    func data(_ type: RecordType) -> [[UInt8]] {
        records.filter { $0.type == type && $0.section == .answer }.map(\.data)
    }

    /// The TTLs of the records of a type.
    func ttls(_ type: RecordType) -> [UInt32] { records.filter { $0.type == type }.map(\.ttl) }
}
