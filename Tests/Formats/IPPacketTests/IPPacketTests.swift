import Testing

@testable import IPPacket
