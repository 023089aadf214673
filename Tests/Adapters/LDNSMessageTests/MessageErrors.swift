import ByteAccess
import DNSMessage

/// The error that reading bytes as a message throws; nil when they are one.
func messageError(_ bytes: [UInt8]) -> DNSMessageError? {
    do {
        _ = try DNSMessageView(checking: bytes.span.octets)
        return nil
    } catch {
        return error
    }
}
