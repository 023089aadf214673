import ByteAccess
import CMeasurement
import OpenSSLCrypto
import WireGuard

/// Trains of data messages one after the other, as an adapter seals and opens them.
struct Trains: ~Copyable {
    let cryptography: OpenSSLCryptography
    let key = [UInt8](repeating: 7, count: 32)
    var buffer: [UInt8]
    let trains: [MessageTrain]
    var messages: Int { trains.reduce(0) { $0 + $1.count } }

    /// Several trains of `count` messages with a packet of `packetLength` bytes each, about a megabyte in all.
    init(of count: Int, packetLength: Int) throws {
        cryptography = try OpenSSLCryptography()
        let messageLength = packetLength + 32
        let number = max(1, 1_000_000 / (messageLength * count))
        trains = (0..<number).map {
            MessageTrain(
                offset: $0 * count * messageLength, count: count, stride: messageLength, lastLength: messageLength)
        }
        var buffer = [UInt8](repeating: 0, count: number * count * messageLength)
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        for train in trains {
            for index in 0..<count {
                let start = train.range(of: index).lowerBound
                bytes.storeLittleEndian(4 as UInt32, at: start)
                bytes.storeLittleEndian(UInt64(start), at: start + 8)
            }
        }
        self.buffer = buffer
    }

    mutating func seal() {
        var buffer = takeBytes(of: &self.buffer)
        defer { self.buffer = buffer }
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        for train in trains { cryptography.sealMessages(of: train, in: &bytes, key: key.span.octets) }
    }

    mutating func open() {
        var buffer = takeBytes(of: &self.buffer)
        defer { self.buffer = buffer }
        var span = buffer.mutableSpan
        var bytes = span.mutableOctets
        for train in trains {
            let authentic = cryptography.openMessages(of: train, in: &bytes, key: key.span.octets)
            precondition(authentic == UInt64.max >> UInt64(64 - train.count), "a message that is not authentic")
        }
    }
}

/// Seals trains of messages; an operation is one message.
struct Sealing: ~Copyable, Benchmark {
    var trains: Trains
    let operations: Int

    init(_ trains: consuming Trains) {
        operations = trains.messages
        self.trains = trains
    }

    mutating func run() { trains.seal() }
}

/// Opens trains of messages; an operation is one message.
struct Opening: ~Copyable, Benchmark {
    var trains: Trains
    let operations: Int

    init(_ trains: consuming Trains) {
        operations = trains.messages
        self.trains = trains
    }

    mutating func prepare() { trains.seal() }
    mutating func run() { trains.open() }
}
