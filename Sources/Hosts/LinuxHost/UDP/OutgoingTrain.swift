internal import WireGuard

/// A train that waits in a `SendBatch`.
struct OutgoingTrain {
    /// The datagrams, by their offset from the start of the batch's buffer.
    var train: MessageTrain
    /// What they are sent with.
    let transmission: Transmission
    /// The length of the socket address.
    var addressLength = 0
    /// The length of the control messages beside a single datagram.
    var controlLength = 0
    /// The same with the segment size behind them.
    var segmentedControlLength = 0
    /// True while the control messages name the local source.
    var namesSource = false
    /// The error that the source was given up for, until it is told; 0 for none.
    var sourceError: Int32 = 0

    /// The datagrams of `train`, which leave with `transmission`.
    init(train: MessageTrain, transmission: Transmission) {
        self.train = train
        self.transmission = transmission
    }

    /// The family that the datagrams travel in.
    @inline(__always)
    var family: AddressFamily { AddressFamily(of: transmission.path.remote.address) }

    /// Takes the datagrams of `next` in, if they follow without a gap, go to the same place in the same way, and if only the
    /// last of all is shorter than the others. Only possible before anything was sent. What would not fit one message together
    /// stays apart: the receiver joins the packets of a super-packet best when they come as they were.
    @inline(__always)
    mutating func extend(by next: MessageTrain, _ transmission: Transmission) -> Bool {
        guard train.lastLength == train.stride, train.offset + train.length == next.offset, train.stride > 0,
            next.stride == train.stride || (next.count == 1 && next.lastLength < train.stride), next.lastLength > 0,
            train.count + next.count <= SendBatch.maximumSegments,
            train.length + next.length <= SendBatch.maximumTrainLength,
            transmission == self.transmission
        else { return false }
        train.count += next.count
        train.lastLength = next.lastLength
        return true
    }
}
