public import IPPacket

/// An address of an interface and the length of the network that it lies in: 10.8.0.2/24. Unlike in a prefix, the bits behind
/// the length count.
public struct InterfaceAddress: Hashable, Sendable {
    /// The address.
    public let address: IPAddress
    /// How many of its bits are the network's: 0 to 32, or 0 to 128.
    public let prefixLength: UInt8

    /// An address in a network. Traps when `prefixLength` is beyond the family's 32 or 128.
    public init(address: IPAddress, prefixLength: UInt8) {
        precondition(Int(prefixLength) <= address.bitWidth, "a prefix longer than its address")
        self.address = address
        self.prefixLength = prefixLength
    }

    /// An address by itself: its network is as long as it.
    public init(host address: IPAddress) {
        self.init(address: address, prefixLength: UInt8(truncatingIfNeeded: address.bitWidth))
    }

    /// The address that `text` spells, with a slash and a length, or the whole length without them.
    public init(parsing text: some StringProtocol) throws(IPAddressError) {
        let network = try IPPrefix(parsing: text)
        let end = text.firstIndex(of: "/") ?? text.endIndex
        self.init(address: try IPAddress(parsing: text[..<end]), prefixLength: network.length)
    }

    /// The network that the address lies in.
    public var network: IPPrefix { IPPrefix(address: address, length: prefixLength) }
}

extension InterfaceAddress: CustomStringConvertible {
    /// The address, a slash and the length.
    public var description: String { "\(address)/\(prefixLength)" }
}
