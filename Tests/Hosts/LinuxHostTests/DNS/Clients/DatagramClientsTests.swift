import DNSProxy
import IPPacket
import Testing
import WireGuard

@testable import LinuxHost

@Suite struct DatagramClientsTests {
    private func client(_ port: UInt16) -> DatagramClient {
        DatagramClient(
            origin: .socket(3), client: Endpoint(address: address("192.0.2.1"), port: port),
            server: Endpoint(address: address("192.0.2.53"), port: 53))
    }

    @Test func eachIsTakenOnceByItsOwnToken() {
        var clients = DatagramClients()
        var tokens: [ClientToken] = []
        for port in 0..<1_000 as Range<UInt16> {
            let next = clients.nextToken
            let given = clients.add(client(port))
            #expect(given == next)
            tokens.append(next)
        }
        #expect(Set(tokens).count == 1_000)
        #expect(clients.count == 1_000)
        for (port, token) in tokens.enumerated().reversed() {
            let taken = clients.take(token)
            #expect(taken?.client.port == UInt16(port))
            let again = clients.take(token)
            #expect(again == nil)
        }
        #expect(clients.count == 0)
    }

    @Test func noTokenNamesASecondQuery() {
        var clients = DatagramClients()
        var used: Set<ClientToken> = []
        // One after the other, so that the same place is used; then bursts, after which the places are given back.
        for count in [1, 1, 1, 5, 600, 1, 600, 1] {
            let tokens = (0..<count).map { clients.add(client(UInt16($0))) }
            for token in tokens {
                #expect(used.insert(token).inserted)
                #expect(ClientKind(of: token) == .datagram)
            }
            let taken = tokens.compactMap { clients.take($0) }
            #expect(taken.count == count)
            let again = used.compactMap { clients.take($0) }
            #expect(again.isEmpty)
            #expect(clients.capacity <= 256)
        }
    }

    @Test func tokensOfOthersNameNobody() {
        var clients = DatagramClients()
        let token = clients.add(client(1))
        let others = [
            StreamQuery(slot: 0, generation: 0, number: 0).token, ClientToken(rawValue: token.rawValue | 0xFF_FFFF),
            ClientToken(rawValue: token.rawValue + 1 << 24),
        ]
        let taken = others.compactMap { clients.take($0) }
        #expect(taken.isEmpty)
        #expect(clients.count == 1)
    }
}
