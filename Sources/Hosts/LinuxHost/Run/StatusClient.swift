internal import CLinux
internal import Glibc
internal import Provider

/// Why a running daemon could not be asked.
public enum StatusFailure: Error, Equatable, CustomStringConvertible, Sendable {
    /// Nobody answers at the control socket, with the error number that says so.
    case notRunning(path: String, errno: Int32)
    /// The connection ended before there was an answer.
    case connectionLost
    /// The daemon answered that it could not, in its words.
    case refused(String)
    /// The answer is not one that this version understands.
    case notUnderstood

    /// One line for the person who asked.
    public var description: String {
        switch self {
        case .notRunning(let path, let error):
            "no daemon answers at \(path): \(SystemCallError("connect", errno: error))"
        case .connectionLost: "the daemon ended the connection"
        case .refused(let reason): "the daemon says: \(reason)"
        case .notUnderstood: "the daemon's answer is not understood: it may be of another version"
        }
    }
}

/// A connection to a running daemon, for `sluice status` and `sluice dns flush`.
public struct StatusClient: ~Copyable {
    private let socket: FileDescriptor
    private var received: [UInt8] = []

    /// Connects to the daemon at a control socket.
    public init(path: String) throws(StatusFailure) {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard var address = unixAddress(of: path) else { throw .notRunning(path: path, errno: ENAMETOOLONG) }
        let number = Glibc.socket(AF_UNIX, type, 0)
        guard number >= 0 else { throw .notRunning(path: path, errno: errno) }
        let socket = FileDescriptor(adopting: number)
        guard unsafe withSocketAddress(&address, { unsafe connect(number, $0, $1) }) == 0 else {
            throw .notRunning(path: path, errno: errno)
        }
        self.socket = socket
    }

    /// The status: at once, or when its revision is no longer `revision` and at the latest after a minute.
    public mutating func status(after revision: UInt64? = nil) throws(StatusFailure) -> StatusReport {
        // Without a revision to compare with there is nothing to wait for.
        let request = ControlRequest.status(after: revision, timeLimit: .seconds(revision == nil ? 0 : 60))
        return try StatusReport(line: answer(to: request))
    }

    /// Sends a request, and waits for the line that answers it.
    mutating func answer(to request: ControlRequest) throws(StatusFailure) -> String {
        try send(request.line)
        return try receive()
    }

    private func send(_ line: String) throws(StatusFailure) {
        let bytes = Array(line.utf8)
        let number = socket.rawValue
        // A request is far shorter than what a socket takes at once.
        let count = unsafe bytes.withUnsafeBytes {
            // The pointer and the length are the array's own.
            unsafe Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard count == bytes.count else { throw .connectionLost }
    }

    private mutating func receive() throws(StatusFailure) -> String {
        var chunk = [UInt8](repeating: 0, count: 16_384)
        let number = socket.rawValue
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                defer { received.removeFirst(end + 1) }
                return String(decoding: received[..<end], as: UTF8.self)
            }
            let count = unsafe chunk.withUnsafeMutableBytes {
                // The pointer and the length are the array's own.
                unsafe read(number, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .connectionLost }
            received += chunk[..<count]
        }
    }
}
