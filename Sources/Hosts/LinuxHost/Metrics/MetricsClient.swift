internal import ByteAccess
internal import CLinux
internal import Glibc
internal import OpenMetrics
internal import Provider

/// A client of the metrics: what it sent, and what it is to get.
final class MetricsClient {
    /// How many bytes behind its request are read and thrown away before its connection ends all the same.
    private static let wasteLimit = 65_536

    /// The connection.
    let descriptor: FileDescriptor
    /// What its events carry.
    let token: UInt64
    /// When it has to be done.
    let deadline: Instant
    /// True when there is nothing more to do for it.
    private(set) var isOver = false

    private var reader = HTTPRequestReader()
    /// True once its request was read.
    private var isAnswered = false
    private var unsent: [UInt8] = []
    private var sentCount = 0
    private var wasteCount = 0

    /// A client that was just accepted.
    init(_ descriptor: consuming FileDescriptor, token: UInt64, deadline: Instant) {
        self.descriptor = descriptor
        self.token = token
        self.deadline = deadline
    }

    /// What its descriptor is to be watched for.
    var interest: EventInterest { sentCount < unsent.count ? .writable : .readable }

    /// Reads or writes. Returns its request once, when that is whole; a wrong one is answered here.
    func serve(_ readiness: EventReadiness) -> HTTPRequest? {
        if sentCount < unsent.count {
            send()
            return nil
        }
        var bytes = InlineArray<4_096, UInt8>(repeating: 0)
        let number = descriptor.rawValue
        var span = bytes.mutableSpan
        let count = unsafe span.withUnsafeMutableBytes {
            // The pointer and the length are the array's own.
            unsafe recv(number, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
        }
        guard count > 0 else {
            if count == 0 || errno != EAGAIN && errno != EINTR { isOver = true }
            return nil
        }
        if isAnswered {
            // What is left unread when a connection ends would have the kernel throw the answer away.
            wasteCount += count
            if wasteCount > Self.wasteLimit { isOver = true }
            return nil
        }
        switch reader.take(span.span.octets.extracting(first: count)) {
        case .incomplete: return nil
        case .request(let request): return request
        case .refused(let status):
            answer(HTTPResponse(status))
            return nil
        }
    }

    /// Gives it its answer.
    func answer(_ response: HTTPResponse) {
        guard !isAnswered else { return }
        isAnswered = true
        unsent = Array(response.text.utf8)
        send()
    }

    private func send() {
        while sentCount < unsent.count {
            let number = descriptor.rawValue
            let count = unsafe unsent[sentCount...].withUnsafeBytes {
                // The pointer and the length are those of what is left. A closed other end is an error and no signal.
                unsafe Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if count < 0 {
                if errno == EINTR { continue }
                if errno != EAGAIN { isOver = true }
                return
            }
            sentCount += count
        }
        unsent = []
        sentCount = 0
        // The client has all of it when it sees the end.
        if shutdown(descriptor.rawValue, Int32(SHUT_WR)) != 0 { isOver = true }
    }
}
