import ByteAccess
import Provider

/// Handshake messages that came in and wait for the expensive part: at most 4096 (Linux). Its length tells whether the
/// device is under load: an eighth full, and for a second after that.
struct HandshakeQueue {
    struct Message {
        let bytes: InlineArray<148, UInt8>
        let length: Int
        let path: Path
    }

    private var messages: [Message] = []
    private var head = 0
    private var underLoadUntil = Instant(nanoseconds: 0)

    var count: Int { messages.count - head }
    var isEmpty: Bool { count == 0 }

    /// Adds a message of at most 148 bytes. False when the queue is full.
    mutating func append(_ bytes: RawSpan, from path: Path) -> Bool {
        guard count < ProtocolConstants.maximumQueuedHandshakes else { return false }
        var copy = InlineArray<148, UInt8>(repeating: 0)
        var span = copy.mutableSpan
        var octets = span.mutableOctets
        octets.copy(bytes, to: 0)
        messages.append(Message(bytes: copy, length: bytes.byteCount, path: path))
        return true
    }

    /// Takes the message that came first.
    mutating func takeFirst() -> Message? {
        guard !isEmpty else { return nil }
        let message = messages[head]
        head += 1
        if head == messages.count {
            // A flood is over: give its memory back.
            messages.removeAll(keepingCapacity: messages.count <= 64)
            head = 0
        } else if head >= 256, head * 2 >= messages.count {
            messages.removeFirst(head)
            head = 0
        }
        return message
    }

    mutating func removeAll() {
        messages = []
        head = 0
    }

    /// True when handshakes must prove that they own their address.
    mutating func isUnderLoad(at now: Instant) -> Bool {
        if count >= ProtocolConstants.underLoadQueueLength {
            underLoadUntil = now + ProtocolConstants.underLoadDuration
            return true
        }
        return now < underLoadUntil
    }
}
