internal import CLinux
internal import Glibc
internal import WireGuard

/// A datagram that could not be sent as it was meant to be.
struct SendFailure: Equatable {
    /// The peer it was for; nil for an answer to somebody who is not known to be one.
    var peer: PeerIndex?
    /// Where it was to go.
    var path: Path
    /// Why it failed.
    var errno: Int32
    /// What became of it.
    var outcome: Outcome

    /// What became of a datagram that failed.
    enum Outcome: Equatable {
        /// The local source is no longer good, and the datagram left without it: the source is to be forgotten.
        case sentWithoutSource
        /// It was dropped.
        case dropped
    }
}

/// What a flush did.
struct SendResult: Equatable {
    /// How many datagrams the kernel took.
    var sent = 0
    /// How many were dropped, the full buffer's among them.
    var dropped = 0
    /// How many of the dropped ones found the socket's buffer full.
    var bufferFull = 0
}

/// Datagrams that wait to be sent together, in one contiguous buffer that cores write into. Everything is allocated
/// once.
///
/// The order within a family is kept.
@safe struct SendBatch: ~Copyable {
    /// How many datagrams fit.
    let capacity: Int
    /// How many bytes of datagrams fit.
    let byteCapacity: Int
    /// How many datagrams wait.
    private(set) var count = 0
    /// How many bytes are taken.
    private var used = 0
    /// How many trains wait.
    private var trainCount = 0

    private let bytes: UnsafeMutableRawPointer
    private let messages: UnsafeMutablePointer<clinux_message>
    private let vectors: UnsafeMutablePointer<iovec>
    /// For each datagram: the train it belongs to.
    private let trains: UnsafeMutablePointer<Int32>
    // One of each for every train; there are never more trains than datagrams.
    private let transmissions: UnsafeMutablePointer<Transmission>
    private let addresses: UnsafeMutableRawPointer
    private let controls: UnsafeMutableRawPointer

    /// Room for `capacity` datagrams that have `byteCapacity` bytes together.
    init(capacity: Int, byteCapacity: Int) {
        precondition(capacity > 0 && capacity <= 1_024, "a batch is 1 to 1,024 datagrams")
        precondition(byteCapacity > 0, "a batch without room")
        self.capacity = capacity
        self.byteCapacity = byteCapacity
        unsafe bytes = .allocate(byteCount: byteCapacity, alignment: 4_096)
        unsafe messages = .allocate(capacity: capacity)
        unsafe messages.initialize(repeating: clinux_message(), count: capacity)
        unsafe vectors = .allocate(capacity: capacity)
        unsafe vectors.initialize(repeating: iovec(), count: capacity)
        unsafe trains = .allocate(capacity: capacity)
        unsafe transmissions = .allocate(capacity: capacity)
        unsafe addresses = .allocate(byteCount: capacity * SocketAddress.capacity, alignment: 8)
        unsafe controls = .allocate(byteCount: capacity * ControlMessages.capacity, alignment: 8)
    }

    deinit {
        // All of it is trivial (Transmission holds only integers and enums of them): nothing to deinitialize.
        unsafe bytes.deallocate()
        unsafe messages.deallocate()
        unsafe vectors.deallocate()
        unsafe trains.deallocate()
        unsafe transmissions.deallocate()
        unsafe addresses.deallocate()
        unsafe controls.deallocate()
    }

    /// How many bytes are free.
    @inline(__always)
    var unusedByteCount: Int { byteCapacity - used }

    /// How many datagrams can still be added.
    @inline(__always)
    var unusedCount: Int { capacity - count }

    /// The free part of the buffer: where the next datagrams are written before they are added.
    @_lifetime(&self)
    @inline(__always)
    mutating func unusedBytes() -> MutableRawSpan {
        // `used` never exceeds the capacity. Nobody else reaches the bytes while `self` is borrowed.
        let span = unsafe MutableRawSpan(_unsafeStart: bytes + used, byteCount: byteCapacity - used)
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Adds the datagrams of a train that was written to `unusedBytes()`, whose start its offset counts from. The train
    /// must have as many datagrams as `unusedCount` at most.
    @inline(__always)
    mutating func append(_ train: MessageTrain, _ transmission: Transmission) {
        precondition(train.count >= 0 && train.count <= unusedCount, "more datagrams than the batch has room for")
        precondition(
            train.offset >= 0 && train.lastLength >= 0 && train.stride >= 0
                && train.length <= unusedByteCount - train.offset,
            "a train outside of the free bytes")
        if train.count == 0 { return }
        let slot = trainCount
        trainCount += 1
        // In bounds: there are never more trains than datagrams.
        unsafe transmissions.advanced(by: slot).initialize(to: transmission)
        let addressLength = writeAddress(of: slot)
        let controlLength = writeControl(of: slot, withSource: true)
        for index in 0..<train.count {
            let range = train.range(of: index)
            // In bounds by the preconditions.
            unsafe vectors[count] = iovec(iov_base: bytes + used + range.lowerBound, iov_len: range.count)
            unsafe messages[count].header.msg_iov = vectors + count
            unsafe messages[count].header.msg_iovlen = 1
            unsafe messages[count].header.msg_name = addresses + slot * SocketAddress.capacity
            unsafe messages[count].header.msg_namelen = socklen_t(addressLength)
            unsafe messages[count].header.msg_control = controls + slot * ControlMessages.capacity
            unsafe messages[count].header.msg_controllen = controlLength
            unsafe trains[count] = Int32(slot)
            count += 1
        }
        used += train.offset + train.length
    }

    /// Forgets everything that waits.
    mutating func removeAll() {
        count = 0
        used = 0
        trainCount = 0
    }

    /// Sends everything and empties the batch. Never waits: what finds a buffer full is dropped and counted.
    ///
    /// A datagram whose local source the kernel no longer accepts is sent once more without it. Each failure but a full
    /// buffer is told to `onFailure`.
    mutating func flush(to sockets: borrowing UDPSocketPair, onFailure: (SendFailure) -> Void) -> SendResult {
        var result = SendResult()
        var start = 0
        while start < count {
            let family = family(of: start)
            var end = start + 1
            while end < count && self.family(of: end) == family { end += 1 }
            if let number = sockets.descriptorNumber(for: family) {
                send(start..<end, through: number, into: &result, onFailure: onFailure)
            } else {
                for index in start..<end { drop(index, errno: EAFNOSUPPORT, into: &result, onFailure: onFailure) }
            }
            start = end
        }
        removeAll()
        return result
    }

    /// Sends a run of datagrams of one family.
    private func send(
        _ range: Range<Int>, through number: Int32, into result: inout SendResult, onFailure: (SendFailure) -> Void
    ) {
        var index = range.lowerBound
        while index < range.upperBound {
            // In bounds; every message points at storage of ours that `append` filled.
            let sent = unsafe clinux_sendmmsg(number, messages + index, UInt32(range.upperBound - index))
            if sent > 0 {
                // When it stopped early, the next call tells why.
                result.sent += Int(sent)
                index += Int(sent)
                continue
            }
            let error = errno
            switch error {
            case EINTR: continue
            case EAGAIN, ENOBUFS:
                result.dropped += 1
                result.bufferFull += 1
            case _ where Self.meansBadSource(error) && hasSource(index):
                removeSource(from: index)
                if unsafe clinux_sendmmsg(number, messages + index, 1) == 1 {
                    result.sent += 1
                    report(index, errno: error, .sentWithoutSource, onFailure)
                } else {
                    drop(index, errno: errno, into: &result, onFailure: onFailure)
                }
            default:
                drop(index, errno: error, into: &result, onFailure: onFailure)
            }
            index += 1
        }
    }

    /// True for the errors that a vanished local source or interface gives: `EINVAL` for IPv6 and `ENETUNREACH` for
    /// IPv4 when the address is gone, `ENODEV` when the interface is.
    private static func meansBadSource(_ error: Int32) -> Bool {
        error == EINVAL || error == ENETUNREACH || error == ENODEV || error == EADDRNOTAVAIL
    }

    private func drop(
        _ index: Int, errno: Int32, into result: inout SendResult, onFailure: (SendFailure) -> Void
    ) {
        result.dropped += 1
        report(index, errno: errno, .dropped, onFailure)
    }

    private func report(
        _ index: Int, errno: Int32, _ outcome: SendFailure.Outcome, _ onFailure: (SendFailure) -> Void
    ) {
        let transmission = transmission(of: index)
        onFailure(SendFailure(peer: transmission.peer, path: transmission.path, errno: errno, outcome: outcome))
    }

    @inline(__always)
    private func transmission(of index: Int) -> Transmission {
        // In bounds: `append` set the train of every datagram below `count`.
        unsafe transmissions[Int(trains[index])]
    }

    @inline(__always)
    private func family(of index: Int) -> AddressFamily {
        AddressFamily(of: transmission(of: index).path.remote.address)
    }

    /// True when the datagram still names the source that it was given.
    private func hasSource(_ index: Int) -> Bool {
        transmission(of: index).path.source != nil
    }

    /// Lets the kernel choose the source of this datagram and of those that follow it in its train.
    private func removeSource(from index: Int) {
        // In bounds, as in `append`.
        let slot = unsafe Int(trains[index])
        let length = writeControl(of: slot, withSource: false)
        var index = index
        while index < count, unsafe Int(trains[index]) == slot {
            unsafe messages[index].header.msg_controllen = length
            index += 1
        }
    }

    @inline(__always)
    private func writeAddress(of slot: Int) -> Int {
        // In bounds: a slot has `SocketAddress.capacity` bytes of its own.
        var span = unsafe MutableRawSpan(
            _unsafeStart: addresses + slot * SocketAddress.capacity, byteCount: SocketAddress.capacity)
        return unsafe SocketAddress.write(transmissions[slot].path.remote, to: &span)
    }

    @inline(__always)
    private func writeControl(of slot: Int, withSource: Bool) -> Int {
        // In bounds: a slot has `ControlMessages.capacity` bytes of its own.
        var span = unsafe MutableRawSpan(
            _unsafeStart: controls + slot * ControlMessages.capacity, byteCount: ControlMessages.capacity)
        return unsafe ControlMessages.write(transmissions[slot], withSource: withSource, to: &span)
    }
}
