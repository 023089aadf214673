internal import CNetlink
internal import Glibc

extension PrivilegedService {
    /// Sets the limits of a link in the calling thread's namespace. A device elsewhere has those of whoever made it.
    func limitSuperPackets(of name: InterfaceName) throws(NetlinkError) {
        let index = unsafe if_nametoindex(name.string)
        let socket = try NetlinkSocket(adopting: try netlinkQuestionSocket())
        _ = try unsafe socket.send(
            NetlinkMessage.superPacketLimitRequest(
                index: index, size: UInt32(TUNOptions.superPacketSizeLimit),
                segments: UInt32(TUNOptions.superPacketSegmentLimit)))
        var refusal: Int32 = 0
        // The kernel answers while it takes the request.
        _ = try unsafe socket.receive { answer in
            // A complete message, as NetlinkSocket hands them over.
            if let error = unsafe NetlinkMessage.error(answer) { refusal = error }
        }
        if refusal != 0 { throw .refused(errno: refusal) }
    }
}
