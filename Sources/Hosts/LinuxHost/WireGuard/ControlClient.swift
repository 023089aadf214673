internal import ByteAccess
internal import CLinux
internal import Glibc
internal import OpenSSLCrypto
internal import Provider
internal import WireGuard

/// What control clients act on.
protocol ControlTarget: ~Copyable {
    /// Calls `body` with the device.
    func withDevice<Result>(_ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result
    /// Binds to another port. Returns the `errno` of a failure.
    mutating func setListenPort(_ port: UInt16) -> Int32?
    /// Sets the mark on what is sent. Returns the `errno` of a failure.
    mutating func setFirewallMark(_ mark: UInt32) -> Int32?
}

/// A connected control client.
final class ControlClient {
    /// Its connection.
    var connection: ControlConnection

    init(_ connection: consuming ControlConnection) {
        self.connection = connection
    }
}

/// One connection to the control socket, speaking the configuration protocol.
struct ControlConnection: ~Copyable {
    /// The longest line, without its end: well above the longest that means something.
    static let maximumLineLength = 1_024
    private static let inputCapacity = 16_384
    private static let outputCapacity = 65_536
    /// The room that the next piece of a listing may need.
    private static let pieceRoom = 24_576

    private var stream: UNIXConnection
    private var session = ConfigurationSession()
    /// The listing under way. Nothing more is read until it is sent.
    private var listing: ConfigurationListing?
    private var hasEnded = false
    /// The rest of a line that was too long is still to come.
    private var isSkippingLine = false

    init(adopting descriptor: consuming FileDescriptor) {
        stream = UNIXConnection(
            adopting: descriptor, inputCapacity: Self.inputCapacity, outputCapacity: Self.outputCapacity)
    }

    /// Watches the connection with a loop.
    func register(with loop: borrowing EventLoop, token: UInt64) throws(SystemCallError) {
        try loop.register(stream.descriptor, token: token, interest: .readable)
    }

    /// Watches for what the connection needs next.
    func update(_ loop: borrowing EventLoop, token: UInt64) throws(SystemCallError) {
        let waits = stream.hasUnsentOutput || listing != nil
        try loop.modify(stream.descriptor, token: token, interest: waits ? .writable : .readable)
    }

    /// Stops watching it.
    func unregister(from loop: borrowing EventLoop) {
        // A connection that is about to be closed leaves the loop in any case.
        try? loop.unregister(stream.descriptor)
    }

    /// Reads, carries out and answers what can be done now. False when the connection is over.
    mutating func serve(at now: Instant, for target: inout some ControlTarget & ~Copyable) -> Bool {
        do throws(SystemCallError) {
            if !stream.hasUnsentOutput, listing == nil, !hasEnded {
                switch try stream.fill() {
                case .received, .wouldBlock: break
                case .endOfStream: hasEnded = true
                case .bufferFull: discardOverlongLine()
                }
            }
            repeat {
                target.withDevice { continueListing($0) }
                while listing == nil, !stream.hasUnsentOutput || stream.outputRoom > Self.pieceRoom,
                    let length = nextLineLength()
                {
                    handleLine(length, at: now, for: &target)
                    target.withDevice { continueListing($0) }
                }
                guard try stream.flush() else { return true }
            } while listing != nil || nextLineLength() != nil
            return !hasEnded
        } catch {
            return false
        }
    }

    private mutating func nextLineLength() -> Int? {
        guard let length = lengthUpToLineEnd() else { return nil }
        guard isSkippingLine else { return length }
        isSkippingLine = false
        stream.consume(length + 1)
        return lengthUpToLineEnd()
    }

    private func lengthUpToLineEnd() -> Int? {
        let bytes = stream.unread
        for offset in bytes.byteOffsets where bytes.uint8(at: offset) == UInt8(ascii: "\n") { return offset }
        return nil
    }

    private mutating func handleLine(_ length: Int, at now: Instant, for target: inout some ControlTarget & ~Copyable) {
        let step: ConfigurationSession.Step
        if length > Self.maximumLineLength {
            step = session.receiveOverlongLine()
        } else {
            step = Self.receive(length, of: stream, &session, at: now, for: &target)
        }
        stream.consume(length + 1)
        switch step {
        case .setListenPort(let port):
            if let error = target.setListenPort(port) { answer(session.fail(error)) }
        case .setFirewallMark(let mark):
            if let error = target.setFirewallMark(mark) { answer(session.fail(error)) }
        default: answer(step)
        }
    }

    private mutating func answer(_ step: ConfigurationSession.Step) {
        switch step {
        case .next, .setListenPort, .setFirewallMark: break
        case .reply(let failure):
            // `wg` takes the negative of what it reads for a set operation as the error.
            write("errno=\(failure.map { -$0.errorNumber } ?? 0)\n\n")
        case .list(nil):
            listing = ConfigurationListing()
        case .list(let failure?):
            // Here `wg` reads digits only.
            write("errno=\(failure.errorNumber)\n\n")
        }
    }

    private static func receive(
        _ length: Int, of stream: borrowing UNIXConnection, _ session: inout ConfigurationSession, at now: Instant,
        for target: inout some ControlTarget & ~Copyable
    ) -> ConfigurationSession.Step {
        let line = stream.unread.extracting(first: length)
        return target.withDevice { device in
            session.receive(line, for: &device, at: now, interfaceIndex: InterfaceNumber.number)
        }
    }

    /// A line that fills the buffer and has no end yet is refused, and the rest of it is skipped.
    private mutating func discardOverlongLine() {
        if !isSkippingLine { answer(session.receiveOverlongLine()) }
        isSkippingLine = true
        let length = stream.unread.byteCount
        stream.consume(length)
    }

    private mutating func continueListing(_ device: borrowing Device<OpenSSLCryptography>) {
        while var current = listing, stream.outputRoom >= Self.pieceRoom {
            var text: [UInt8] = []
            let hasMore = current.appendNext(of: device, to: &text, interfaceName: InterfaceNumber.name)
            if hasMore {
                _ = stream.write(text.span.octets)
                Self.wipe(&text)
                listing = current
            } else {
                write("errno=0\n\n")
                listing = nil
            }
        }
    }

    private mutating func write(_ text: String) {
        _ = stream.write(text.utf8Span.span.octets)
    }

    private static func wipe(_ text: inout [UInt8]) {
        var span = text.mutableSpan
        var octets = span.mutableOctets
        WireGuard.wipe(&octets)
    }
}

extension ConfigurationSession.Failure {
    /// The `errno` that tells a client about the failure.
    fileprivate var errorNumber: Int32 {
        switch self {
        case .refused(.malformedLine): EPROTO
        case .refused(.unknownKey), .refused(.invalidValue): EINVAL
        case .refused(.tooManyPeers): ENOSPC
        case .system(let number): number
        }
    }
}
