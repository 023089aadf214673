import IPPacket
import OpenSSLCrypto
import PacketTunnel
import Provider
import SimulatedHost
import TestSupport
import Testing
import WireGuard

@Suite("Packet tunnels between providers")
struct ProviderScenarioTests {
    @Test("A tunnel comes up without a word on the wire, and carries packets both ways")
    func connect() throws {
        let pair = ProviderPair(seed: 1)
        pair.right.handle(.pathChanged(ProviderPair.wiFi))
        try pair.bringUp()
        #expect(pair.left.settings?.includedRoutes == [IPPrefix(host: v4(10, 9, 0, 2))])
        pair.sendLeft(5)
        pair.sendRight(6)
        try pair.advance(1)
        #expect(pair.left.machine.deliveredNumbers == [5])
        #expect(pair.right.machine.deliveredNumbers == [6])
        #expect(pair.left.provider.currentStatus.peers.first?.handshake == .completed)
        // The first message is the packet's: none was sent when the tunnel came up.
        let first = try #require(pair.network.log.first)
        guard case .packetIn = first.kind else {
            Issue.record("\(first.kind) came before the first packet")
            return
        }
    }

    @Test("With keepalives the first handshake follows the settings, and none comes before them")
    func keepalive() throws {
        let pair = ProviderPair(seed: 2, keepalive: 25)
        pair.left.system = { _ in .after(.seconds(2), nil) }
        pair.right.handle(.stop(.none))
        pair.startLeft()
        try pair.advance(2)
        #expect(pair.leftStatus == .connecting && pair.count(.initiation, from: 0) == 0)
        try pair.advance(0.1)
        #expect(pair.leftStatus == .connected && pair.count(.initiation, from: 0) == 1)
    }

    @Test("A path lost for 5 s: same keys, same endpoint, nothing looked up, and packets flow at once")
    func pathLost5Seconds() throws {
        let pair = ProviderPair(seed: 3)
        try pair.bringUp()
        pair.move(to: nil, .none)
        try pair.advance(5)
        pair.sendLeft(1)
        try pair.advance(0)
        pair.move(to: v4(192, 0, 2, 1), ProviderPair.wiFi)
        pair.sendRight(2)
        pair.sendLeft(3)
        try pair.advance(0.5)
        #expect(pair.right.machine.deliveredNumbers == [2])
        #expect(pair.left.machine.deliveredNumbers == [1, 3])
        #expect(pair.count(.initiation, from: 0) == 1 && pair.count(.initiation, from: 1) == 0)
        #expect(pair.lookups == 1)
        #expect(!pair.left.actions.contains { if case .setReasserting = $0.action { true } else { false } })
    }

    @Test("A path lost for 30 s: the tunnel reasserts after 12, its settings stay, and it finds a server that moved")
    func pathLost30Seconds() throws {
        let pair = ProviderPair(seed: 4)
        try pair.bringUp()
        let settings = pair.left.settings
        pair.move(to: nil, .none)
        try pair.advance(11.9)
        #expect(pair.leftStatus == .connected)
        try pair.advance(0.2)
        #expect(pair.leftStatus == .reasserting)
        #expect(pair.left.settings == settings && settings != nil)
        // What is sent into the tunnel meanwhile goes nowhere.
        let sent = pair.network.log.count
        pair.sendRight(1)
        try pair.advance(17.9)
        #expect(!pair.network.log.dropFirst(sent).contains { if case .sent = $0.kind { true } else { false } })

        pair.right.machine.addresses = [v4(192, 0, 2, 99)]
        pair.answer = (
            .milliseconds(30), .success([Endpoint(address: v4(192, 0, 2, 99), port: 51_820)])
        )
        pair.move(to: v4(203, 0, 113, 77), ProviderPair.cellular)
        try pair.advance(0.5)
        #expect(pair.leftStatus == .connected && pair.lookups == 2)
        // The server knows where we are before we send anything.
        pair.sendLeft(2)
        pair.sendRight(3)
        try pair.advance(0.5)
        #expect(pair.left.machine.deliveredNumbers == [2])
        #expect(pair.right.machine.deliveredNumbers.last == 3)
        let reassertings = pair.left.actions.compactMap {
            if case .setReasserting(let value) = $0.action { value } else { nil as Bool? }
        }
        #expect(reassertings == [true, false])
    }

    @Test("A path that comes back while the name does not: the peer stays where it was", arguments: [true, false])
    func unresolvableResumption(answers: Bool) throws {
        let pair = ProviderPair(seed: 5)
        try pair.bringUp()
        pair.move(to: nil, .none)
        try pair.advance(30)
        pair.answer = answers ? (.seconds(1), .failure(.temporaryFailure)) : nil
        pair.move(to: v4(203, 0, 113, 77), ProviderPair.cellular)
        try pair.advance(26)
        #expect(pair.leftStatus == .connected)
        pair.sendLeft(1)
        try pair.advance(0.5)
        #expect(pair.left.machine.deliveredNumbers == [1])
    }

    @Test("A roaming machine is found at its new address at once, under the same keys")
    func roam() throws {
        let pair = ProviderPair(seed: 6)
        try pair.bringUp()
        pair.move(to: v4(203, 0, 113, 77), ProviderPair.cellular)
        try pair.advance(0.1)
        // Nothing was sent into the tunnel since: a keepalive told the server.
        pair.sendLeft(1)
        try pair.advance(0.1)
        #expect(pair.left.machine.deliveredNumbers == [1])
        #expect(pair.right.provider.currentStatus.peers.first?.endpoint?.address == v4(203, 0, 113, 77))
        #expect(pair.count(.initiation, from: 0) + pair.count(.initiation, from: 1) == 1)
        #expect(pair.lookups == 1)
    }

    @Test("A day of roaming and of short losses looks no name up, whatever it leads to by now")
    func roamForADay() throws {
        let pair = ProviderPair(seed: 7)
        try pair.bringUp()
        pair.network.keepsLog = false
        pair.answer = (.milliseconds(1), .success([Endpoint(address: v4(198, 51, 100, 1), port: 1)]))
        var path = ProviderPair.cellular
        var delivered = 0
        for minute in 0..<1440 as Range<UInt32> {
            let address = IPAddress.v4(IPv4Address(bits: 0xcb00_7100 + minute))
            path.addresses = [address]
            if minute % 3 == 0 {
                pair.move(to: nil, .none)
                try pair.advance(Double(minute % 12))
            }
            pair.move(to: address, path)
            pair.sendRight(UInt64(minute))
            try pair.advance(6)
            pair.sendLeft(UInt64(minute))
            try pair.advance(54)
            delivered += pair.left.machine.delivered.count
            pair.left.machine.forgetDelivered()
        }
        #expect(pair.lookups == 1)
        #expect(pair.right.machine.deliveredNumbers == Array(0..<1440))
        #expect(delivered == 1440)
    }

    @Test("After 200 s of sleep a fresh handshake comes by itself, so that the server gets through")
    func sleep200Seconds() throws {
        let pair = ProviderPair(seed: 8)
        try pair.bringUp()
        // The server's keepalive is over: no timer of the device is left that would start a handshake by itself.
        try pair.advance(12)
        pair.left.handle(.sleep)
        let sent = pair.network.log.count
        try pair.advance(100)
        pair.sendLeft(1)
        try pair.advance(100)
        #expect(
            !pair.network.log.dropFirst(sent).contains {
                if $0.machine == 0, case .sent = $0.kind { true } else { false }
            })
        pair.left.handle(.wake)
        try pair.advance(0.5)
        #expect(pair.leftStatus == .connected)
        #expect(pair.count(.initiation, from: 0) == 2)
        pair.sendLeft(2)
        try pair.advance(0.5)
        #expect(pair.left.machine.deliveredNumbers.last == 2)
        #expect(pair.lookups == 1)
    }

    @Test("A short sleep costs no handshake")
    func sleep30Seconds() throws {
        let pair = ProviderPair(seed: 9)
        try pair.bringUp()
        // The server's keepalive is over: no timer of the device is left that would start a handshake by itself.
        try pair.advance(12)
        pair.left.handle(.sleep)
        try pair.advance(30)
        pair.left.handle(.wake)
        pair.sendRight(1)
        try pair.advance(0.5)
        #expect(pair.right.machine.deliveredNumbers == [1])
        #expect(pair.count(.initiation, from: 0) == 1)
    }

    @Test("A name that is found late is waited for; one that is never found ends the start, unless it is remembered")
    func lateNames() throws {
        let late = ProviderPair(seed: 10)
        late.answer = (.seconds(8), .success([ProviderPair.server]))
        late.startLeft()
        try late.advance(7.9)
        #expect(late.leftStatus == .connecting)
        try late.advance(0.2)
        #expect(late.startResults == [nil] && late.leftStatus == .connected)

        let never = ProviderPair(seed: 11)
        never.answer = nil
        never.startLeft()
        try never.advance(26)
        #expect(never.startResults == [.resolution(ProviderPair.serverName, .timedOut)])
        #expect(never.left.settings == nil && !never.left.machine.hasSockets)

        let remembered = ProviderPair(seed: 12, remembered: [ProviderPair.serverName: ProviderPair.server])
        remembered.answer = nil
        try remembered.advance(1)
        remembered.startLeft()
        try remembered.advance(26)
        #expect(remembered.startResults == [nil])
        #expect(remembered.left.provider.currentStatus.peers.first?.endpoint == ProviderPair.server)
    }

    @Test("What a run remembers brings the next one up when the resolver is out of reach")
    func rememberedFromARun() throws {
        let pair = ProviderPair(seed: 13)
        try pair.bringUp()
        pair.left.handle(.stop(.userInitiated))
        try pair.advance(1)
        pair.answer = nil
        pair.startLeft()
        try pair.advance(26)
        #expect(pair.startResults == [nil, nil])
        pair.sendRight(7)
        try pair.advance(1)
        #expect(pair.right.machine.deliveredNumbers == [7])
    }

    @Test("Settings that fail, and settings that come late, leave none behind")
    func settings() throws {
        let failing = ProviderPair(seed: 14)
        failing.left.system = { $0 == nil ? .now(nil) : .after(.seconds(1), .networkSettingsFailed) }
        failing.startLeft()
        try failing.advance(4)
        #expect(failing.startResults == [.settings(.refused(.networkSettingsFailed))])
        #expect(failing.left.settings == nil)

        // The system takes 7 s: too long, but it does do it, and is told to undo it.
        let late = ProviderPair(seed: 15)
        late.left.system = { $0 == nil ? .now(nil) : .after(.seconds(7), nil) }
        late.startLeft()
        try late.advance(5.2)
        #expect(late.startResults.isEmpty)
        try late.advance(10)
        #expect(late.startResults == [.settings(.late)])
        #expect(late.left.settings == nil && !late.left.machine.hasSockets)
        #expect(late.leftStatus == .disconnected)

        // Not answering at all ends as well.
        let silent = ProviderPair(seed: 16)
        silent.left.system = { _ in .never }
        silent.startLeft()
        try silent.advance(30)
        #expect(silent.startResults == [.settings(.late)])
    }

    @Test("In a network that has only IPv6 the tunnel goes on through NAT64, under the same keys")
    func nat64() throws {
        let pair = ProviderPair(seed: 17)
        try pair.bringUp()
        // The translator: the server is reached by this address from there.
        let mapped = IPAddress.v6(try IPv6Address(parsing: "64:ff9b::c000:202"))
        let own = IPAddress.v6(try IPv6Address(parsing: "2001:db8::77"))
        pair.right.machine.addresses.append(mapped)
        pair.left.translator = { address in
            address == v4(192, 0, 2, 2) ? .after(.milliseconds(50), mapped) : .now(nil)
        }
        pair.move(
            to: own,
            NetworkPath(interfaceIndex: 3, interfaceName: "wwan0", addresses: [own], supportsIPv4: false))
        try pair.advance(0.2)
        pair.sendLeft(1)
        pair.sendRight(2)
        try pair.advance(0.2)
        #expect(pair.left.machine.deliveredNumbers == [1])
        #expect(pair.right.machine.deliveredNumbers == [2])
        pair.move(to: v4(192, 0, 2, 1), ProviderPair.wiFi)
        pair.right.machine.addresses = [v4(192, 0, 2, 2)]
        try pair.advance(0.2)
        pair.sendLeft(3)
        try pair.advance(0.2)
        #expect(pair.left.machine.deliveredNumbers == [1, 3])
        #expect(pair.count(.initiation, from: 0) + pair.count(.initiation, from: 1) == 1)
        #expect(pair.lookups == 1)
    }

    @Test("A reload under traffic loses no packet and no session of peers that stay")
    func reload() throws {
        let pair = ProviderPair(seed: 18)
        try pair.bringUp()
        var configuration = pair.client
        for step in 1...40 as ClosedRange<UInt64> {
            var other = PeerConfiguration(publicKey: ProviderPair.publicKey(of: pair.generator.bytes(32)))
            other.allowedIPs = [IPPrefix(host: v4(10, 9, 1, UInt8(step)))]
            other.endpoint = EndpointName(host: "192.0.2.50", port: UInt16(step))
            configuration.peers = [other, pair.client.peers[0]]
            configuration.mtu = step % 2 == 0 ? 1400 : nil
            pair.left.handle(.reload(.init(id: .init(rawValue: 100 + step), configuration: configuration)))
            pair.sendRight(step)
            pair.sendLeft(step)
            try pair.advance(0.5)
            #expect(pair.left.settings == PacketTunnelNetworkSettings(configuration))
        }
        #expect(pair.right.machine.deliveredNumbers == Array(1...40))
        #expect(pair.left.machine.deliveredNumbers == Array(1...40))
        #expect(pair.count(.initiation, from: 0) + pair.count(.initiation, from: 1) == 1)
        #expect(pair.lookups == 1)
    }

    @Test("After a stop nothing is left: no settings, sockets, keys or peers, and nothing is sent")
    func stop() throws {
        let pair = ProviderPair(seed: 19, keepalive: 5)
        try pair.bringUp()
        pair.left.handle(.stop(.userInitiated))
        try pair.advance(1)
        #expect(pair.leftStatus == .disconnected)
        #expect(pair.left.settings == nil && !pair.left.machine.hasSockets)
        #expect(pair.left.machine.device.peerIndex(of: pair.rightKey) == nil)
        #expect(pair.left.machine.device.nextDeadline() == nil)
        let sent = pair.network.log.count
        try pair.advance(500)
        #expect(
            !pair.network.log.dropFirst(sent).contains {
                if $0.machine == 0, case .sent = $0.kind { true } else { false }
            })
    }

    @Test("Equal seeds give equal courses of events")
    func determinism() throws {
        func course(_ seed: UInt64) throws -> [SimulatedTunnel<OpenSSLCryptography>.Entry] {
            let pair = ProviderPair(seed: seed, keepalive: 25)
            try pair.bringUp()
            for step in 0..<60 {
                switch Int.random(in: 0..<6, using: &pair.generator) {
                case 0: pair.move(to: nil, .none)
                case 1: pair.move(to: v4(192, 0, 2, 1), ProviderPair.wiFi)
                case 2: pair.move(to: v4(203, 0, 113, 77), ProviderPair.cellular)
                case 3: pair.left.handle(.sleep)
                case 4: pair.left.handle(.wake)
                default: pair.sendRight(UInt64(step))
                }
                try pair.advance(Double.random(in: 0..<15, using: &pair.generator))
            }
            return pair.left.actions
        }
        let first = try course(20)
        #expect(first.count > 50)
        #expect(try course(20) == first)
        #expect(try course(21) != first)
    }
}
