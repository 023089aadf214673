import CNGHTTP2

/// The server's side of HTTP/2, frame by frame, so that it can do wrong whatever there is to do wrong. Of nghttp2 it has nothing but
/// the decompression of header fields.
@safe
final class ScriptedHTTPServer {
    /// What a client has asked for.
    struct Request {
        let stream: UInt32
        var fields: [(name: String, value: String)] = []
        var body: [UInt8] = []
        var isComplete = false

        subscript(name: String) -> String? { fields.first { $0.name == name }?.value }
    }

    struct Frame {
        let type: UInt8
        let flags: UInt8
        let stream: UInt32
        let payload: [UInt8]
    }

    /// Every frame that came.
    private(set) var frames: [Frame] = []
    private(set) var requests: [Request] = []
    private var consumed = 0
    private let inflater: OpaquePointer

    init() {
        var inflater: OpaquePointer?
        guard unsafe nghttp2_hd_inflate_new(&inflater) == 0, let inflater = unsafe inflater else {
            fatalError("out of memory")
        }
        unsafe self.inflater = inflater
    }

    deinit { unsafe nghttp2_hd_inflate_del(inflater) }

    static var preface: [UInt8] { Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) }

    /// Reads what has come since the last call, of all that has come.
    func read(_ all: [UInt8]) {
        if consumed == 0, all.starts(with: Self.preface) { consumed = Self.preface.count }
        while all.count - consumed >= 9 {
            let head = Array(all[consumed..<consumed + 9])
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            guard all.count - consumed >= 9 + length else { return }
            let stream = head[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            let payload = Array(all[consumed + 9..<consumed + 9 + length])
            take(Frame(type: head[3], flags: head[4], stream: stream, payload: payload))
            consumed += 9 + length
        }
    }

    private func take(_ frame: Frame) {
        frames.append(frame)
        switch frame.type {
        case 1:
            var request = Request(stream: frame.stream, isComplete: frame.flags & 1 != 0)
            // Without priorities: ours sends none, or five bytes in front.
            request.fields = inflate(frame.flags & 0x20 != 0 ? Array(frame.payload.dropFirst(5)) : frame.payload)
            requests.append(request)
        case 0:
            guard let index = requests.firstIndex(where: { $0.stream == frame.stream }) else { return }
            requests[index].body += frame.payload
            requests[index].isComplete = frame.flags & 1 != 0
        default: break
        }
    }

    private func inflate(_ block: [UInt8]) -> [(name: String, value: String)] {
        var fields: [(String, String)] = []
        var rest = block[...]
        while true {
            var field = unsafe nghttp2_nv()
            var flags: Int32 = 0
            // The field is the inflater's until the next call.
            let count = unsafe rest.withUnsafeBufferPointer {
                unsafe nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
            }
            guard count >= 0 else { return fields }
            rest = rest.dropFirst(count)
            if UInt32(flags) & NGHTTP2_HD_INFLATE_EMIT.rawValue != 0 {
                let name = unsafe UnsafeBufferPointer(start: field.name, count: field.namelen)
                let value = unsafe UnsafeBufferPointer(start: field.value, count: field.valuelen)
                unsafe fields.append((String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
            }
            if UInt32(flags) & NGHTTP2_HD_INFLATE_FINAL.rawValue != 0 {
                unsafe nghttp2_hd_inflate_end_headers(inflater)
                return fields
            }
            if count == 0, rest.isEmpty { return fields }
        }
    }
}

/// A frame as it is on the wire (RFC 9113 §4.1).
func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
    [UInt8(payload.count >> 16), UInt8(payload.count >> 8 & 0xFF), UInt8(payload.count & 0xFF), type, flags]
        + octets(stream) + payload
}

func octets(_ number: UInt32) -> [UInt8] {
    [UInt8(number >> 24), UInt8(number >> 16 & 0xFF), UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)]
}

/// SETTINGS with a number of streams, or with nothing.
func settings(streams: UInt32? = nil) -> [UInt8] { frame(4, streams.map { [0, 3] + octets($0) } ?? []) }

/// Header fields, none of them compressed (RFC 7541 §6.2.2).
func headers(_ stream: UInt32, end: Bool = false, _ fields: [(String, String)]) -> [UInt8] {
    var block: [UInt8] = []
    for (name, value) in fields {
        block += [0] + text(name) + text(value)
    }
    return frame(1, flags: end ? 5 : 4, stream: stream, block)
}

private func text(_ text: String) -> [UInt8] {
    // A number with a prefix of seven bits (RFC 7541 §5.1).
    var length: [UInt8] = []
    if text.utf8.count < 127 {
        length = [UInt8(text.utf8.count)]
    } else {
        var rest = text.utf8.count - 127
        length = [127]
        while rest >= 128 {
            length.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        length.append(UInt8(rest))
    }
    return length + Array(text.utf8)
}

func data(_ stream: UInt32, end: Bool = true, _ bytes: [UInt8]) -> [UInt8] {
    frame(0, flags: end ? 1 : 0, stream: stream, bytes)
}

/// A right response.
func response(_ stream: UInt32, _ body: [UInt8], _ more: [(String, String)] = []) -> [UInt8] {
    headers(stream, [(":status", "200"), ("content-type", "application/dns-message")] + more) + data(stream, body)
}
