import ByteAccess

/// The type of a message: the first byte of a datagram, with three zero bytes behind it (paper, section 5.4).
enum MessageType: UInt32 {
    case initiation = 1
    case response = 2
    case cookieReply = 3
    case data = 4

    /// The type of the message in `datagram`, or nil when the type is unknown, a reserved byte is set or the length is not
    /// one that the type can have.
    init?(of datagram: RawSpan) {
        guard datagram.byteCount >= 4, let type = MessageType(rawValue: datagram.littleEndianUInt32(at: 0)) else {
            return nil
        }
        let fits =
            switch type {
            case .initiation: datagram.byteCount == InitiationLayout.length
            case .response: datagram.byteCount == ResponseLayout.length
            case .cookieReply: datagram.byteCount == CookieReplyLayout.length
            case .data: datagram.byteCount >= DataLayout.minimumLength
            }
        guard fits else { return nil }
        self = type
    }
}

/// Where the fields of a handshake initiation lie (paper, section 5.4.2). All integers are little-endian.
enum InitiationLayout {
    static let length = 148
    static let sender = 4
    static let ephemeral = 8..<40
    static let encryptedStatic = 40..<88
    static let encryptedTimestamp = 88..<116
    static let mac1 = 116
    static let mac2 = 132
}

/// Where the fields of a handshake response lie (paper, section 5.4.3).
enum ResponseLayout {
    static let length = 92
    static let sender = 4
    static let receiver = 8
    static let ephemeral = 12..<44
    static let encryptedNothing = 44..<60
    static let mac1 = 60
    static let mac2 = 76
}

/// Where the fields of a cookie reply lie (paper, section 5.4.7).
enum CookieReplyLayout {
    static let length = 64
    static let receiver = 4
    static let nonce = 8..<32
    static let encryptedCookie = 32..<64
}

/// Where the fields of a data message lie (paper, section 5.4.6).
enum DataLayout {
    static let receiver = 4
    static let counter = 8
    static let headerLength = 16
    static let tagLength = 16
    /// The length of a keepalive: an empty plaintext.
    static let minimumLength = headerLength + tagLength
}
