import ByteAccess
import CLinux
import Glibc
import IPPacket
import OpenSSLCrypto
import PacketTunnel
import Provider
import Testing
import WireGuard

@testable import LinuxHost

/// How many threads of this process are in the calling thread's network namespace: a test has one of its own.
private func threadCount() throws -> Int {
    func namespace(_ task: String) -> UInt64? {
        var status = stat()
        return unsafe stat("/proc/\(task)/ns/net", &status) == 0 ? UInt64(status.st_ino) : nil
    }
    let own = namespace("thread-self")
    return try lines(output(of: "ls", "/proc/\(getpid())/task")).filter { namespace("self/task/\($0)") == own }.count
}

/// How many UDP sockets of each family have a port in the calling thread's namespace.
private func socketCounts(_ port: UInt16) throws -> [Int] {
    let suffix = String(port, radix: 16, uppercase: true)
    let digits = String(repeating: "0", count: 4 - suffix.count) + suffix
    return try ["udp", "udp6"].map { table in
        try lines(readFile("/proc/thread-self/net/\(table)")).filter { $0.contains(":\(digits) ") }.count
    }
}

private func makeShared() throws -> SharedDevice {
    try SharedDevice(Device(cryptography: OpenSSLCryptography(), entropy: SystemRandomNumberGenerator()))
}

@Suite struct TunnelInterfaceTests {
    @Test func threadsAndSocketsComeAndGoWithTheInterface() throws {
        try aloneInNewNetworkNamespace {
            let alone = try threadCount()
            #expect(alone == 1)
            let loop = try EventLoop()
            var interface = try TunnelInterface(
                TunnelInterfaceOptions(name: interfaceName("slt-wg"), workers: 3, socketsFollowLink: false),
                log: Log(level: .silent, name: "slt-wg"))
            try interface.start(with: loop)
            let workerCount = interface.workerCount
            #expect(workerCount == 3)
            #expect(try threadCount() == 3)

            var failure = interface.openSockets(port: 51_820, mark: 0, loop)
            #expect(failure == nil)
            #expect(try socketCounts(51_820) == [3, 3])
            // The same port again: none of the old may be left.
            failure = interface.rebindSockets(loop)
            #expect(failure == nil)
            #expect(try socketCounts(51_820) == [3, 3])
            failure = interface.openSockets(port: 51_821, mark: 7, loop)
            #expect(failure == nil)
            #expect(try socketCounts(51_820) == [0, 0])
            #expect(try socketCounts(51_821) == [3, 3])
            interface.closeSockets(loop)
            #expect(try socketCounts(51_821) == [0, 0])

            failure = interface.openSockets(port: 51_820, mark: 0, loop)
            #expect(failure == nil)
            interface.close(loop)
            #expect(try threadCount() == 1)
            #expect(try socketCounts(51_820) == [0, 0])
        }
    }

    @Test func aPortThatIsTakenLeavesTheSocketsAlone() throws {
        try aloneInNewNetworkNamespace {
            let loop = try EventLoop()
            var interface = try TunnelInterface(
                TunnelInterfaceOptions(name: interfaceName("slt-wg"), workers: 2, socketsFollowLink: false),
                log: Log(level: .silent, name: "slt-wg"))
            try interface.start(with: loop)
            var failure = interface.openSockets(port: 51_820, mark: 0, loop)
            #expect(failure == nil)
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            let taken = try channel.openUDPSockets(port: 51_900, mark: 0)
            failure = interface.openSockets(port: 51_900, mark: 0, loop)
            #expect(failure?.errorNumber == EADDRINUSE)
            #expect(try socketCounts(51_820) == [2, 2])
            let port = interface.withDevice { $0.listenPort }
            #expect(port == 51_820)
            _ = taken.port
            interface.close(loop)
        }
    }

    @Test func aDeletedInterfaceIsToldOnce() throws {
        try aloneInNewNetworkNamespace {
            var loop = try EventLoop()
            var events = EventBuffer(capacity: 8)
            var interface = try TunnelInterface(
                TunnelInterfaceOptions(name: interfaceName("slt-wg"), workers: 1),
                log: Log(level: .silent, name: "slt-wg"))
            try interface.start(with: loop)
            try run("ip", "link", "delete", "slt-wg")
            try eventually("the end of the interface") {
                try loop.wait(until: HostClock.now() + patience, into: &events)
                for index in 0..<events.count { _ = interface.handle(events[index], loop) }
                return interface.condition == .deleted ? () : nil
            }
            // Whoever owns it may take its time: nothing more comes of the device.
            try eventually("quiet") {
                try loop.wait(until: Instant(nanoseconds: 0), into: &events)
                for index in 0..<events.count { _ = interface.handle(events[index], loop) }
                return events.count == 0 ? () : nil
            }
            interface.close(loop)
        }
    }

    @Test func aWorkerGivesBackTheSocketsThatItHad() throws {
        try aloneInNewNetworkNamespace {
            var channel = InProcessPrivilegedChannel(PrivilegedService())
            var queues = try channel.openTUNQueues(
                named: interfaceName("slt-queue"), maximumTransmissionUnit: 1_420,
                options: TUNOptions(wantsOffloads: false, queues: 2))
            // Nobody reads the first.
            _ = queues.takeFirst()
            guard let tun = queues.takeFirst() else {
                Issue.record("no second queue")
                return
            }
            let worker = try PacketWorker(
                tun: tun, shared: makeShared(), cryptography: try OpenSSLCryptography(), offloads: Offloads(),
                queries: nil)
            try worker.start()
            #expect(try threadCount() == 2)
            let none = worker.exchangeSockets(try channel.openUDPSockets(port: 0, mark: 0))
            #expect(port(of: none) == nil)
            let sockets = try channel.openUDPSockets(port: 0, mark: 0)
            let later = sockets.port
            let earlier = worker.exchangeSockets(sockets)
            #expect(port(of: earlier) != nil)
            #expect(port(of: earlier) != later)
            let last = worker.exchangeSockets(nil)
            #expect(port(of: last) == later)
            #expect(port(of: worker.exchangeSockets(nil)) == nil)
            worker.stop()
            #expect(try threadCount() == 1)
            // A second time there is nothing to stop.
            worker.stop()
        }
    }

    private func port(of sockets: borrowing UDPSocketPair?) -> UInt16? {
        switch sockets {
        case .some(let sockets): sockets.port
        case .none: nil
        }
    }

    @Test func thereAreAsManyThreadsAsProcessorsUpToALimit() throws {
        let processors = try #require(Int(lines(output(of: "nproc"))[0]))
        #expect(WorkerCount.standard == min(processors, 4))
    }
}

@Suite struct SharedDeviceTests {
    private func isWoken(_ shared: SharedDevice) -> Bool { shared.wakeUp.clear() }

    private func locked<Result>(_ shared: SharedDevice, _ body: (inout Device<OpenSSLCryptography>) -> Result) -> Result
    {
        shared.lock()
        defer { shared.unlock() }
        return body(&shared.device)
    }

    /// Makes the device have a handshake to begin.
    private func giveWork(_ shared: SharedDevice) {
        locked(shared) { device in
            let now = HostClock.now()
            let key = [UInt8](repeating: 7, count: 32)
            device.setPrivateKey([UInt8](repeating: 0x42, count: 32).span.octets, at: now)
            device.setLink(up: true, at: now)
            guard let peer = device.addPeer(PublicKey(key.span.octets)) else { return }
            device.setEndpoint(Endpoint(address: address("127.0.0.1"), port: 9), of: peer)
            _ = device.setPersistentKeepalive(.seconds(25), of: peer, at: now)
            device.initiateHandshakes(with: [PublicKey(key.span.octets)])
        }
    }

    @Test func anIdleDeviceLetsTheFirstWorkerSleep() throws {
        let shared = try makeShared()
        #expect(shared.deadlineBeforeSleep() == nil)
        shared.wakeIfNeeded()
        #expect(!isWoken(shared))
    }

    @Test func whoSleepsIsWokenOnceForWork() throws {
        let shared = try makeShared()
        #expect(shared.deadlineBeforeSleep() == nil)
        giveWork(shared)
        #expect(locked(shared) { $0.hasWork })
        shared.wakeIfNeeded()
        #expect(isWoken(shared))
        shared.wakeIfNeeded()
        #expect(!isWoken(shared))
    }

    @Test func whoIsAwakeIsNotWoken() throws {
        let shared = try makeShared()
        _ = shared.deadlineBeforeSleep()
        shared.noteAwake()
        giveWork(shared)
        shared.wakeIfNeeded()
        #expect(!isWoken(shared))
        // With work to do nobody goes to sleep.
        let now = HostClock.now()
        let deadline = try #require(shared.deadlineBeforeSleep())
        #expect(deadline >= now)
        #expect(deadline <= HostClock.now())
        shared.wakeIfNeeded()
        #expect(!isWoken(shared))
    }
}
