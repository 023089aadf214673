/// DNS messages as bytes, put together as the papers have them (RFC 1035 §4.1) and not by the code under test.
enum ClientWire {
    /// A query for a name, whose labels have no dots in them.
    static func query(id: UInt16, _ name: String, type: UInt16 = 1, additional: [UInt8] = []) -> [UInt8] {
        var bytes: [UInt8] = [
            UInt8(id >> 8), UInt8(id & 0xFF), 0x01, 0, 0, 1, 0, 0, 0, 0, 0, additional.isEmpty ? 0 : 1,
        ]
        bytes += question(name, type)
        return bytes + additional
    }

    /// An OPT record with a payload size (RFC 6891 §6.1.2).
    static func edns(size: UInt16) -> [UInt8] { [0, 0, 41, UInt8(size >> 8), UInt8(size & 0xFF), 0, 0, 0, 0, 0, 0] }

    /// An answer to what a server was sent, with records of the question's name and type, each with this data.
    static func reply(to query: [UInt8], type: UInt16 = 1, _ data: [[UInt8]]) -> [UInt8] {
        var end = 12
        while query[end] != 0 { end += 1 + Int(query[end]) }
        end += 5
        var bytes =
            Array(query[..<2]) + [0x81, 0x80, 0, 1, UInt8(data.count >> 8), UInt8(data.count & 0xFF), 0, 0, 0, 0]
        bytes += query[12..<end]
        for record in data {
            bytes += [0xC0, 12, UInt8(type >> 8), UInt8(type & 0xFF), 0, 1, 0, 0, 1, 0]
            bytes += [UInt8(record.count >> 8), UInt8(record.count & 0xFF)] + record
        }
        return bytes
    }

    /// A message with its length in front (RFC 1035 §4.2.2).
    static func framed(_ message: [UInt8]) -> [UInt8] {
        [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message
    }

    /// The ID of a message.
    static func id(_ message: [UInt8]) -> UInt16 { UInt16(message[0]) << 8 | UInt16(message[1]) }

    /// The response code of a message.
    static func code(_ message: [UInt8]) -> UInt8 { message[3] & 0xF }

    private static func question(_ name: String, _ type: UInt16) -> [UInt8] {
        var bytes: [UInt8] = []
        for label in name.split(separator: ".") { bytes += [UInt8(label.utf8.count)] + Array(label.utf8) }
        return bytes + [0, UInt8(type >> 8), UInt8(type & 0xFF), 0, 1]
    }
}
