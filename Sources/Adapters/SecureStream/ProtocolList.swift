/// Protocols for ALPN in the form of the wire: each with its length in a byte (RFC 7301 §3.1).
struct ProtocolList {
    private(set) var bytes: [UInt8] = []

    init(_ protocols: [String]) throws(TLSError) {
        for name in protocols {
            guard 1...255 ~= name.utf8.count else { throw .invalidProtocol }
            bytes.append(UInt8(name.utf8.count))
            bytes.append(contentsOf: name.utf8)
        }
        guard bytes.count <= UInt16.max else { throw .invalidProtocol }
    }
}
