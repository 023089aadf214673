import CLDNS
import TestSupport

/// ldns without our view in front of it.
enum RawLDNS {
    /// True when ldns takes the bytes as a message.
    static func accepts(_ bytes: [UInt8]) -> Bool {
        var packet: UnsafeMutablePointer<ldns_pkt>?
        // ldns reads as many bytes as it is told.
        let status = unsafe ldns_wire2pkt(&packet, bytes, bytes.count)
        guard status == LDNS_STATUS_OK else { return false }
        unsafe ldns_pkt_free(packet)
        return true
    }

    /// The octets that ldns reads out of a name in presentation form; nil when it is none for ldns.
    static func octets(ofName text: String) -> [UInt8]? {
        guard let name = unsafe ldns_dname_new_frm_str(text) else { return nil }
        defer { unsafe ldns_rdf_deep_free(name) }
        // The name belongs to ldns until it is freed.
        return unsafe Array(UnsafeBufferPointer(start: ldns_rdf_data(name), count: ldns_rdf_size(name)))
    }
}
