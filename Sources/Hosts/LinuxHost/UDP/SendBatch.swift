internal import CLinux
internal import Glibc
internal import IPPacket
internal import Provider
internal import WireGuard

/// Trains of datagrams that wait to be sent together, in one contiguous buffer that cores write into. Everything is allocated
/// once.
///
/// A train that follows another to the same place with datagrams of the same length becomes part of it. Where the kernel can,
/// a train leaves as few messages, each of many datagrams (`UDP_SEGMENT`); where it cannot, or where the way is too narrow
/// for whole segments, datagram by datagram. Either way one system call takes as many messages as there are.
///
/// The order within a family is kept.
@safe struct SendBatch: ~Copyable {
    /// How many trains fit.
    let capacity: Int
    /// How many bytes of datagrams fit.
    let byteCapacity: Int
    /// How many datagrams wait.
    private(set) var count = 0
    /// How many bytes are taken.
    private var used = 0
    /// How many trains wait.
    private(set) var trainCount = 0

    /// Which destinations are known to take no trains.
    private var limits = PathSegmentLimits()
    /// The peers whose trains the kernel refused since it was last asked, because the way is too narrow for them.
    private var peersOnNarrowPaths: [PeerIndex] = []
    private var segmentationV4: SegmentationSwitch
    private var segmentationV6: SegmentationSwitch

    private let bytes: UnsafeMutableRawPointer
    // One of each for every train.
    private let trains: UnsafeMutablePointer<OutgoingTrain>
    private let addresses: UnsafeMutableRawPointer
    private let controls: UnsafeMutableRawPointer
    // One of each for every message of one call.
    private let messages: UnsafeMutablePointer<clinux_message>
    private let vectors: UnsafeMutablePointer<iovec>
    private let messageCounts: UnsafeMutablePointer<Int>

    /// How many messages one call sends at most.
    private static let messagesPerCall = 64
    /// How many datagrams one message has at most: UDP_MAX_SEGMENTS of Linux before 6.9.
    static let maximumSegments = 64
    /// How many bytes one message of many datagrams has at most. UDP would carry 65,507 in IPv4 and 65,527 in IPv6, but the
    /// kernel cuts by itself, slowly, what is 65,536 bytes or longer with its link, IP and UDP headers; this leaves room for
    /// those, a VLAN tag and the headers of another tunnel.
    static let maximumTrainLength = 65_400

    /// Room for `capacity` trains that have `byteCapacity` bytes together. Without segmentation every datagram is a message
    /// of its own.
    init(capacity: Int, byteCapacity: Int, wantsSegmentation: Bool = true) {
        precondition(capacity > 0 && capacity <= 1_024, "a batch is 1 to 1,024 trains")
        precondition(byteCapacity > 0, "a batch without room")
        self.capacity = capacity
        self.byteCapacity = byteCapacity
        segmentationV4 = SegmentationSwitch(isWanted: wantsSegmentation)
        segmentationV6 = SegmentationSwitch(isWanted: wantsSegmentation)
        unsafe bytes = .allocate(byteCount: byteCapacity, alignment: 4_096)
        unsafe trains = .allocate(capacity: capacity)
        unsafe addresses = .allocate(byteCount: capacity * SocketAddress.capacity, alignment: 8)
        unsafe controls = .allocate(byteCount: capacity * ControlMessages.capacity, alignment: 8)
        unsafe messages = .allocate(capacity: Self.messagesPerCall)
        unsafe messages.initialize(repeating: clinux_message(), count: Self.messagesPerCall)
        unsafe vectors = .allocate(capacity: Self.messagesPerCall)
        unsafe vectors.initialize(repeating: iovec(), count: Self.messagesPerCall)
        unsafe messageCounts = .allocate(capacity: Self.messagesPerCall)
        unsafe messageCounts.initialize(repeating: 0, count: Self.messagesPerCall)
        for index in 0..<Self.messagesPerCall {
            // In bounds, and the vectors live as long as the messages.
            unsafe messages[index].header.msg_iov = vectors + index
            unsafe messages[index].header.msg_iovlen = 1
        }
    }

    deinit {
        // All of it is trivial (a train holds only integers and enums of them): nothing to deinitialize.
        unsafe bytes.deallocate()
        unsafe trains.deallocate()
        unsafe addresses.deallocate()
        unsafe controls.deallocate()
        unsafe messages.deallocate()
        unsafe vectors.deallocate()
        unsafe messageCounts.deallocate()
    }

    /// How many bytes are free.
    @inline(__always)
    var unusedByteCount: Int { byteCapacity - used }

    /// How many trains can still be added, each of as many datagrams as fit the free bytes.
    @inline(__always)
    var unusedCount: Int { capacity - trainCount }

    /// Whether trains of a family leave whole.
    func segmentation(_ family: AddressFamily) -> OffloadCondition {
        switch family {
        case .v4: segmentationV4.condition
        case .v6: segmentationV6.condition
        }
    }

    /// How long a way is known to be narrow.
    static var narrowPathLifetime: Interval { PathSegmentLimits.lifetime }

    /// The peers whose trains the kernel refused since the last call, because the way is too narrow for datagrams of that length.
    mutating func takePeersOnNarrowPaths() -> [PeerIndex] {
        if peersOnNarrowPaths.isEmpty { return [] }
        defer { peersOnNarrowPaths.removeAll() }
        return peersOnNarrowPaths
    }

    /// How many destinations get single datagrams because their path does not carry whole segments.
    var restrictedDestinationCount: Int { limits.count }

    /// The free part of the buffer: where the next datagrams are written before they are added.
    @_lifetime(&self)
    @inline(__always)
    mutating func unusedBytes() -> MutableRawSpan {
        // `used` never exceeds the capacity. Nobody else reaches the bytes while `self` is borrowed.
        let span = unsafe MutableRawSpan(_unsafeStart: bytes + used, byteCount: byteCapacity - used)
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Adds the datagrams of a train that was written to `unusedBytes()`, whose start its offset counts from. There must be
    /// room for one train more.
    @inline(__always)
    mutating func append(_ train: MessageTrain, _ transmission: Transmission) {
        precondition(trainCount < capacity, "more trains than the batch has room for")
        precondition(
            train.offset >= 0 && train.count >= 0 && train.lastLength >= 0 && train.lastLength <= train.stride
                && train.length <= unusedByteCount - train.offset,
            "a train outside of the free bytes")
        if train.count == 0 { return }
        let added = MessageTrain(
            offset: used + train.offset, count: train.count, stride: train.stride, lastLength: train.lastLength)
        used += train.offset + train.length
        count += train.count
        // In bounds: the slot before the first free one is a train that waits.
        if trainCount > 0, unsafe trains[trainCount - 1].extend(by: added, transmission) { return }
        let slot = trainCount
        trainCount += 1
        unsafe trains.advanced(by: slot).initialize(to: OutgoingTrain(train: added, transmission: transmission))
        writeAddress(of: slot)
        writeControl(of: slot, withSource: true)
    }

    /// Forgets everything that waits.
    mutating func removeAll() {
        count = 0
        used = 0
        trainCount = 0
    }
}

// MARK: - Sending

extension SendBatch {
    /// Where in the batch sending has got to.
    private struct Position {
        var train = 0
        /// The first datagram of the train that is not done.
        var datagram = 0
    }

    /// What to do after a message failed.
    private enum Recovery {
        /// It was dropped: go on behind it.
        case goOn
        /// It will leave in another shape: begin again with it.
        case beginAgain
    }

    /// Sends everything and empties the batch. Never waits: what finds a buffer full is dropped and counted.
    ///
    /// A train that the kernel does not take whole is sent datagram by datagram, at once. A datagram whose local source the
    /// kernel no longer accepts is sent once more without it. Each failure but those and a full buffer is told to
    /// `onFailure`, once for all datagrams of one message.
    mutating func flush(
        to sockets: borrowing UDPSocketPair, at now: Instant = HostClock.now(), onFailure: (SendFailure) -> Void
    ) -> SendResult {
        var result = SendResult()
        var position = Position()
        useSegmentation(of: sockets)
        while position.train < trainCount {
            // In bounds by the condition.
            let family = unsafe trains[position.train].family
            guard let number = sockets.descriptorNumber(for: family) else {
                drop(position, unsafe trains[position.train].train.count, errno: EAFNOSUPPORT, &result, onFailure)
                position = Position(train: position.train + 1)
                continue
            }
            let count = prepare(from: position, family, at: now)
            send(count, through: number, family, from: &position, at: now, &result, onFailure)
        }
        removeAll()
        return result
    }

    private mutating func useSegmentation(of sockets: borrowing UDPSocketPair) {
        switch sockets.v4 {
        case .some(let socket): segmentationV4.use(socket)
        case .none: break
        }
        switch sockets.v6 {
        case .some(let socket): segmentationV6.use(socket)
        case .none: break
        }
    }

    /// Fills the messages of one call with datagrams of one family and returns how many there are.
    private mutating func prepare(from start: Position, _ family: AddressFamily, at now: Instant) -> Int {
        let segments = segmentation(family).isOn
        var position = start
        var count = 0
        while position.train < trainCount, unsafe trains[position.train].family == family {
            let outgoing = unsafe trains[position.train]
            let train = outgoing.train
            let limit = segments ? segmentLimit(of: outgoing, at: now) : 1
            while position.datagram < train.count {
                if count == Self.messagesPerCall { return count }
                let number = min(limit, train.count - position.datagram)
                let first = train.range(of: position.datagram)
                let length = train.range(of: position.datagram + number - 1).upperBound - first.lowerBound
                // In bounds: `append` checked the train against the buffer, and there are as many slots of each kind as
                // trains and as messages.
                unsafe vectors[count] = iovec(iov_base: bytes + first.lowerBound, iov_len: length)
                unsafe messages[count].header.msg_name = addresses + position.train * SocketAddress.capacity
                unsafe messages[count].header.msg_namelen = socklen_t(outgoing.addressLength)
                unsafe messages[count].header.msg_control = controls + position.train * ControlMessages.capacity
                unsafe messages[count].header.msg_controllen =
                    number > 1 ? outgoing.segmentedControlLength : outgoing.controlLength
                unsafe messageCounts[count] = number
                count += 1
                position.datagram += number
            }
            position = Position(train: position.train + 1)
        }
        return count
    }

    /// How many datagrams of a train go into one message.
    private mutating func segmentLimit(of outgoing: OutgoingTrain, at now: Instant) -> Int {
        let train = outgoing.train
        guard train.count > 1, train.lastLength > 0, train.stride <= Self.maximumTrainLength / 2,
            limits.allows(train.stride, to: outgoing.transmission.path.remote.address, at: now)
        else { return 1 }
        return min(Self.maximumSegments, Self.maximumTrainLength / train.stride)
    }

    /// Sends the first `count` messages, which begin at `position`, and moves it behind what is done.
    private mutating func send(
        _ count: Int, through number: Int32, _ family: AddressFamily, from position: inout Position, at now: Instant,
        _ result: inout SendResult, _ onFailure: (SendFailure) -> Void
    ) {
        var index = 0
        while index < count {
            // In bounds; every message points at storage of ours that `prepare` filled.
            let sent = unsafe clinux_sendmmsg(number, messages + index, UInt32(count - index))
            if sent > 0 {
                // When it stopped early, the next call tells why.
                for _ in 0..<Int(sent) {
                    finish(unsafe messageCounts[index], at: &position, &result, onFailure)
                    index += 1
                }
                continue
            }
            let error = errno
            if error == EINTR { continue }
            // In bounds by the condition of the loop.
            let datagrams = unsafe messageCounts[index]
            switch recover(from: error, position, datagrams, family, at: now) {
            case .beginAgain: return
            case .goOn:
                if error == EAGAIN || error == ENOBUFS {
                    result.dropped += datagrams
                    result.bufferFull += datagrams
                } else {
                    drop(position, datagrams, errno: error, &result, onFailure)
                }
                advance(&position, by: datagrams)
                index += 1
            }
        }
    }

    /// Counts a message that left, and moves `position` behind it.
    @inline(__always)
    private func finish(
        _ datagrams: Int, at position: inout Position, _ result: inout SendResult, _ onFailure: (SendFailure) -> Void
    ) {
        result.sent += datagrams
        // In bounds: the position is before a datagram that was sent.
        if datagrams > 1 {
            result.sentInTrains += datagrams
        } else if unsafe trains[position.train].train.count > 1 {
            result.sentSingly += 1
        }
        let error = unsafe trains[position.train].sourceError
        if error != 0 {
            report(position, errno: error, .sentWithoutSource, onFailure)
            unsafe trains[position.train].sourceError = 0
        }
        advance(&position, by: datagrams)
    }

    @inline(__always)
    private func advance(_ position: inout Position, by datagrams: Int) {
        position.datagram += datagrams
        // In bounds: the position was before a datagram.
        let count = unsafe trains[position.train].train.count
        if position.datagram >= count {
            position = Position(train: position.train + 1)
        }
    }

    /// Changes what stood in the way of a message, if anything can be changed. It ends because nothing is changed twice:
    /// segmentation goes off, a destination gets its limit, a train loses its source.
    private mutating func recover(
        from error: Int32, _ position: Position, _ datagrams: Int, _ family: AddressFamily, at now: Instant
    ) -> Recovery {
        // In bounds: the position is before a datagram that failed.
        let outgoing = unsafe trains[position.train]
        let destination = outgoing.transmission.path.remote.address
        if datagrams > 1 {
            switch error {
            case EIO:
                // The device that it would leave by cannot finish checksums, or something cuts in between.
                switch family {
                case .v4: segmentationV4.refuse(errno: error)
                case .v6: segmentationV6.refuse(errno: error)
                }
                return .beginAgain
            case EMSGSIZE, EINVAL:
                // The segments are longer than the path's MTU: single datagrams are fragmented, segments never.
                limits.refuse(outgoing.train.stride, to: destination, at: now)
                if error == EMSGSIZE, let peer = outgoing.transmission.peer { peersOnNarrowPaths.append(peer) }
                return .beginAgain
            default: break
            }
        }
        if Self.meansBadSource(error) && outgoing.namesSource {
            unsafe trains[position.train].sourceError = error
            writeControl(of: position.train, withSource: false)
            // It was the source that a train was refused for, if one was.
            if error == EINVAL { limits.forget(destination) }
            return .beginAgain
        }
        return .goOn
    }

    /// True for the errors that a vanished local source or interface gives: `EINVAL` for IPv6 and `ENETUNREACH` for
    /// IPv4 when the address is gone, `ENODEV` when the interface is.
    private static func meansBadSource(_ error: Int32) -> Bool {
        error == EINVAL || error == ENETUNREACH || error == ENODEV || error == EADDRNOTAVAIL
    }

    private func drop(
        _ position: Position, _ datagrams: Int, errno: Int32, _ result: inout SendResult,
        _ onFailure: (SendFailure) -> Void
    ) {
        result.dropped += datagrams
        report(position, errno: errno, .dropped, onFailure)
    }

    private func report(
        _ position: Position, errno: Int32, _ outcome: SendFailure.Outcome, _ onFailure: (SendFailure) -> Void
    ) {
        // In bounds: the position is before a datagram.
        let transmission = unsafe trains[position.train].transmission
        onFailure(SendFailure(peer: transmission.peer, path: transmission.path, errno: errno, outcome: outcome))
    }

    @inline(__always)
    private func writeAddress(of slot: Int) {
        // In bounds: a slot has `SocketAddress.capacity` bytes of its own.
        var span = unsafe MutableRawSpan(
            _unsafeStart: addresses + slot * SocketAddress.capacity, byteCount: SocketAddress.capacity)
        unsafe trains[slot].addressLength = unsafe SocketAddress.write(
            trains[slot].transmission.path.remote, to: &span)
    }

    @inline(__always)
    private func writeControl(of slot: Int, withSource: Bool) {
        // In bounds: a slot has `ControlMessages.capacity` bytes of its own.
        var span = unsafe MutableRawSpan(
            _unsafeStart: controls + slot * ControlMessages.capacity, byteCount: ControlMessages.capacity)
        let outgoing = unsafe trains[slot]
        let length = ControlMessages.write(outgoing.transmission, withSource: withSource, to: &span)
        unsafe trains[slot].controlLength = length
        unsafe trains[slot].segmentedControlLength = ControlMessages.writeSegmentSize(
            UInt16(truncatingIfNeeded: outgoing.train.stride), at: length, to: &span)
        unsafe trains[slot].namesSource = withSource && outgoing.transmission.path.source != nil
    }
}
