import Provider
import Testing
import WireGuard

@testable import LinuxHost

extension ClientRig {
    /// The next message of a client, served meanwhile.
    ///
    /// - Parameter answersServers: True to answer what servers are asked meanwhile.
    mutating func nextMessage(of client: inout ClientSocket, answersServers: Bool = false) throws -> [UInt8] {
        let deadline = HostClock.now() + patience
        while HostClock.now() < deadline {
            switch client.next() {
            case .message(let message): return message
            case .nothing: try turn(until: HostClock.now() + .milliseconds(5))
            case .end, .reset: throw Impatience(awaited: "a message on a connection that is over")
            }
            if answersServers, !asked.isEmpty { try answerFirst() }
        }
        throw Impatience(awaited: "a message")
    }

    /// Fails when the next message of a client has another ID.
    mutating func expectMessage(
        _ id: UInt16, of client: inout ClientSocket, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let message = try nextMessage(of: &client)
        #expect(ClientWire.id(message) == id, sourceLocation: sourceLocation)
    }

    /// Fails when a client's connection does not end, or has a message before that.
    mutating func expectEnd(
        of client: inout ClientSocket, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let deadline = HostClock.now() + patience
        while HostClock.now() < deadline {
            switch client.next() {
            case .message: Issue.record("a message instead of the end", sourceLocation: sourceLocation)
            case .nothing: try turn(until: HostClock.now() + .milliseconds(5))
            case .end, .reset: return
            }
        }
        throw Impatience(awaited: "the end of a connection")
    }

    /// The next datagram of a client, served meanwhile. Fails when it has another ID.
    @discardableResult
    mutating func expectDatagram(
        _ id: UInt16, at client: borrowing ClientSocket, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> (message: [UInt8], from: Endpoint) {
        let deadline = HostClock.now() + patience
        while HostClock.now() < deadline {
            if let datagram = try client.receive() {
                #expect(ClientWire.id(datagram.message) == id, sourceLocation: sourceLocation)
                return datagram
            }
            try turn(until: HostClock.now() + .milliseconds(5))
        }
        throw Impatience(awaited: "a datagram")
    }
}
