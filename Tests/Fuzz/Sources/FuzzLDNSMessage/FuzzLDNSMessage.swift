import DNSMessage
import FuzzSupport
import LDNSMessage

/// The input is a message: what our view accepts, ldns reads without harm, takes, and finds the same in it.
///
/// ldns sees nothing else, as in the daemon. That it takes more than we do is looked at in the tests of LDNSMessage.
@c(LLVMFuzzerTestOneInput)
public func fuzzLDNSMessage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe withInput(start, count) { bytes in
        guard let view = try? DNSMessageView(checking: bytes) else { return }
        do throws(LDNSError) {
            let packet = try LDNSPacket(view)
            let facts = try LDNSAnswerReader().facts(of: view)
            require(facts == ViewAnswerReader().facts(of: view), "both readers find the same")
            let text = try packet.text
            require(!text.isEmpty, "a message can be shown")
        } catch .unreadableType {
            return
        } catch {
            fatalError("ldns takes what we take")
        }
    }
}
