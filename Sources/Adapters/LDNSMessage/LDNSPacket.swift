internal import CLDNS
public import DNSMessage

/// A whole message as ldns has read it.
///
/// Only what a ``DNSMessageView`` has accepted reaches ldns: some inputs make it trap or leak. It is never written to the wire again;
/// the bytes that came are forwarded as they came.
@safe
public struct LDNSPacket: ~Copyable {
    private let packet: UnsafeMutablePointer<ldns_pkt>

    /// Lets ldns read a message that was checked, unless a record in it is of one of ``unreadableTypes``.
    public init(_ message: borrowing DNSMessageView) throws(LDNSError) {
        var records = message.records
        while let record = records.next() {
            for index in Self.unreadableTypes.indices where Self.unreadableTypes[index] == record.type.rawValue {
                throw .unreadableType(record.type)
            }
        }
        var packet: UnsafeMutablePointer<ldns_pkt>?
        let bytes = message.bytes
        // ldns reads `count` bytes and copies what it keeps.
        let status = unsafe bytes.withUnsafeBytes { bytes in
            unsafe ldns_wire2pkt(&packet, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        }
        guard status == LDNS_STATUS_OK else { throw .refused(LDNSStatus(status)) }
        guard let packet = unsafe packet else { throw .outOfMemory }
        unsafe self.packet = packet
    }

    deinit {
        // The packet is this value's own and goes away here, with all that is in it.
        unsafe ldns_pkt_free(packet)
    }

    /// Types whose data ldns does not read to its end. It takes the rest for the next record: that of NSAP-PTR (23), a name for RFC 1706,
    /// it takes for a string, of SINK (40) it reads the first byte alone, and of HIP (55) names in its own way. None of them concerns any
    /// policy, and a message with them can be forwarded without ldns.
    static let unreadableTypes: InlineArray<3, UInt16> = [23, 40, 55]

    /// The message as `dig` and `drill` show it: header, sections, and what ldns knows of EDNS.
    ///
    /// Some data cannot be shown in the form of its type: a CAA tag with a space in it, for one. All data is shown in the form for unknown
    /// types then (RFC 3597 §5).
    public var text: String {
        get throws(LDNSError) {
            guard let text = unsafe ldns_pkt2str(packet) ?? cldns_pkt2str_generic(packet) else { throw .outOfMemory }
            defer { unsafe cldns_free(text) }
            // ldns allocated the text and ended it in a zero; it is freed when it has been copied.
            return unsafe String(cString: text)
        }
    }
}
