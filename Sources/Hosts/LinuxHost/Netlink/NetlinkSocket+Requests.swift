internal import CNetlink
internal import Glibc

extension NetlinkSocket {
    /// Sends a question or a request and reads its answer. The kernel answers while it takes it, so nothing is waited for.
    /// `body` is not called when the answer only says that it was done.
    func ask(_ message: OpaquePointer?, _ body: (UnsafeMutablePointer<nlmsghdr>) -> Void) throws(NetlinkError) {
        guard let message = unsafe message else { throw .library(NLE_NOMEM) }
        let sequence = try unsafe send(message)
        var isAnswered = false
        var refusal: Int32 = 0
        while !isAnswered {
            let reception = try unsafe receive { answer in
                // A complete message, whose header lies within the datagram.
                guard unsafe answer.pointee.nlmsg_seq == sequence else { return }
                isAnswered = true
                if let error = unsafe NetlinkMessage.error(answer) { refusal = error } else { unsafe body(answer) }
            }
            if case .datagram = reception { continue }
            if !isAnswered { throw .malformedAnswer }
        }
        if refusal != 0 { throw .refused(errno: refusal) }
    }

    /// Sends a request that asks for an acknowledgement, and reads it.
    func perform(_ message: OpaquePointer?) throws(NetlinkError) {
        try unsafe ask(message) { _ in }
    }

    /// Sends a question whose answer is a list, and calls `body` with each entry.
    func dump(_ message: OpaquePointer?, _ body: (UnsafeMutablePointer<nlmsghdr>) -> Void) throws(NetlinkError) {
        guard let message = unsafe message else { throw .library(NLE_NOMEM) }
        let sequence = try unsafe send(message)
        var isComplete = false
        var refusal: Int32 = 0
        while !isComplete {
            let reception = try unsafe receive { answer in
                // A complete message, whose header lies within the datagram.
                guard unsafe answer.pointee.nlmsg_seq == sequence else { return }
                if unsafe Int32(answer.pointee.nlmsg_type) == NLMSG_DONE {
                    isComplete = true
                } else if let error = unsafe NetlinkMessage.error(answer) {
                    isComplete = true
                    refusal = error
                } else {
                    unsafe body(answer)
                }
            }
            // The next part is made while the one before is taken, so there is always one.
            if case .datagram = reception { continue }
            if !isComplete { throw .malformedAnswer }
        }
        if refusal != 0 { throw .refused(errno: refusal) }
    }
}
