import ByteAccess
import DNSMessage
import TestSupport

/// A query for a name in presentation form, as the model of the tests has it: octet by octet, with nothing of the code under test but
/// the name.
func query(
    _ name: String, _ type: RecordType = .a, id: UInt16 = 0xABCD, flags: UInt16 = 0x0100, opt: [UInt8]? = nil
) throws -> [UInt8] {
    [UInt8(id >> 8), UInt8(id & 0xFF), UInt8(flags >> 8), UInt8(flags & 0xFF), 0, 1, 0, 0, 0, 0, 0, opt == nil ? 0 : 1]
        + Array(try DomainName(parsing: name).bytes)
        + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1] + (opt ?? [])
}

/// An OPT record with a payload size of 1232 and these options.
func opt(_ options: [UInt8] = [], dnssecOK: Bool = false, size: UInt16 = 1232, version: UInt8 = 0) -> [UInt8] {
    [
        0, 0, 41, UInt8(size >> 8), UInt8(size & 0xFF), 0, version, dnssecOK ? 0x80 : 0, 0, UInt8(options.count >> 8),
        UInt8(options.count & 0xFF),
    ] + options
}

/// A record as bytes.
func record(_ owner: String, _ type: UInt16, ttl: UInt32 = 300, class recordClass: UInt16 = 1, _ data: [UInt8])
    -> [UInt8]
{
    hex(owner)
        + [
            UInt8(type >> 8), UInt8(type & 0xFF), UInt8(recordClass >> 8), UInt8(recordClass & 0xFF), UInt8(ttl >> 24),
            UInt8(ttl >> 16 & 0xFF), UInt8(ttl >> 8 & 0xFF), UInt8(ttl & 0xFF), UInt8(data.count >> 8),
            UInt8(data.count & 0xFF),
        ] + data
}

/// An answer to the query of example.com, with these records.
func answer(
    _ answers: [[UInt8]], authority: [[UInt8]] = [], additional: [[UInt8]] = [], type: RecordType = .a,
    flags: UInt16 = 0x8180
) throws -> [UInt8] {
    var bytes = try query("example.com", type, flags: flags)
    for (offset, count) in [(6, answers.count), (8, authority.count), (10, additional.count)] {
        bytes[offset] = UInt8(count >> 8)
        bytes[offset + 1] = UInt8(count & 0xFF)
    }
    return bytes + (answers + authority + additional).flatMap { $0 }
}

/// The error that reading bytes as a message throws; nil when they are one.
func messageError(_ bytes: [UInt8]) -> DNSMessageError? {
    do {
        _ = try DNSMessageView(checking: bytes.span.octets)
        return nil
    } catch {
        return error
    }
}

/// The error that reading bytes as a client's query throws; nil when they are one.
func queryError(_ bytes: [UInt8]) -> DNSMessageError? {
    do {
        _ = try QueryView(checking: bytes.span.octets)
        return nil
    } catch {
        return error
    }
}

/// The error that looking for what an answer repeats throws; nil when it was found.
func echoError(_ bytes: [UInt8]) -> DNSMessageError? {
    do {
        _ = try QueryEcho(of: bytes.span.octets)
        return nil
    } catch {
        return error
    }
}

/// The bytes of a span; nil when there is none.
func bytesOf(_ span: RawSpan?) -> [UInt8]? {
    guard let span else { return nil }
    return Array(span)
}
