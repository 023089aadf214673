internal import ByteAccess
internal import Glibc

/// A connection of a control socket, with a bounded buffer each way. It never waits.
struct UNIXConnection: ~Copyable {
    /// What a read found.
    enum Filling: Equatable {
        /// This many bytes more wait in the buffer.
        case received(Int)
        /// Nothing is there at present.
        case wouldBlock
        /// The other end sends no more.
        case endOfStream
        /// The buffer is full: consume first.
        case bufferFull
    }

    /// What the event loop watches.
    let descriptor: FileDescriptor
    private var input: ByteBuffer
    private var output: ByteBuffer

    /// Takes over an accepted, non-blocking socket. Capacities are in bytes.
    init(adopting descriptor: consuming FileDescriptor, inputCapacity: Int, outputCapacity: Int) {
        self.descriptor = descriptor
        input = ByteBuffer(capacity: inputCapacity)
        output = ByteBuffer(capacity: outputCapacity)
    }

    /// The bytes that were received and not yet consumed.
    var unread: RawSpan {
        @_lifetime(borrow self) get { input.bytes }
    }

    /// Takes `count` bytes off the front of `unread`.
    mutating func consume(_ count: Int) {
        input.removeFirst(count)
    }

    /// How many bytes `write` can still take.
    var outputRoom: Int { output.room }

    /// True while bytes wait to be sent: the loop is to watch for writing.
    var hasUnsentOutput: Bool { output.count > 0 }

    /// Reads once from the socket.
    mutating func fill() throws(SystemCallError) -> Filling {
        if input.room == 0 { return .bufferFull }
        let number = descriptor.rawValue
        while true {
            let count = unsafe input.append { free in
                // The pointer and the length are the free part's own.
                unsafe read(number, free.baseAddress, free.count)
            }
            if count > 0 { return .received(count) }
            if count == 0 { return .endOfStream }
            let error = errno
            if error == EAGAIN { return .wouldBlock }
            if error == ECONNRESET { return .endOfStream }
            if error != EINTR { throw SystemCallError("read(control socket)", errno: error) }
        }
    }

    /// Puts bytes behind those that wait to be sent. False, and nothing is taken, when they do not fit.
    mutating func write(_ bytes: RawSpan) -> Bool {
        output.append(bytes)
    }

    /// Sends what waits, as far as the socket takes it. True when nothing waits any more.
    mutating func flush() throws(SystemCallError) -> Bool {
        while output.count > 0 {
            let count = unsafe output.bytes.withUnsafeBytes { bytes in
                // The pointer and the length are the span's own. A closed other end is an error and no signal.
                unsafe send(descriptor.rawValue, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            }
            if count >= 0 {
                output.removeFirst(count)
                continue
            }
            let error = errno
            if error == EAGAIN { return false }
            if error != EINTR { throw SystemCallError("send(control socket)", errno: error) }
        }
        return true
    }
}
