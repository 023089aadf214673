public import IPPacket
public import Provider
public import WireGuard

/// Why a simulation cannot go on: a device broke a promise to its host.
public enum SimulationError: Error, Equatable {
    /// So much happened at one instant that it would never end.
    case endlessLoop(machine: Int)
    /// A device asks to be called at a time that it was just called at.
    case deadlineNotInTheFuture(machine: Int)
}

/// Machines with WireGuard devices on a network that delays, loses, repeats and reorders datagrams, all on one virtual clock
/// that jumps from one thing that happens to the next. Equal seeds and inputs give equal logs.
///
/// Datagrams for addresses that no machine has are kept in ``outside``: a scripted peer reads them there, and answers with
/// ``inject(_:from:to:trafficClass:)``.
public final class SimulatedNetwork<Primitives: Cryptography> {
    private enum Occurrence {
        case arrival(SimulatedDatagram, sender: Int)
        case script((SimulatedNetwork) -> Void)
    }

    /// The time.
    public private(set) var clock: VirtualClock
    /// The machines, in the order they were added.
    public private(set) var machines: [SimulatedMachine<Primitives>] = []
    /// What happened so far.
    public private(set) var log: [LoggedEvent] = []
    /// Datagrams that went to no machine, oldest first.
    public private(set) var outside: [SimulatedDatagram] = []
    /// False to keep no log: for long runs with much traffic.
    public var keepsLog = true

    private var queue = EventQueue<Occurrence>()
    private var generator: SeededGenerator
    private let makePrimitives: () -> Primitives

    /// The most actions of one machine at one instant.
    private static var maximumHops: Int { 1_000_000 }

    /// A network without machines.
    ///
    /// - Parameters:
    ///   - seed: What all faults and all secrets of the machines are drawn from.
    ///   - makePrimitives: Makes the cryptography of one device.
    public init(seed: UInt64, clock: VirtualClock = VirtualClock(), makePrimitives: @escaping () -> Primitives) {
        self.clock = clock
        generator = SeededGenerator(seed: seed)
        self.makePrimitives = makePrimitives
    }

    /// Adds a machine with a device that has no key, no peers, and its link up.
    public func addMachine(_ addresses: IPAddress..., port: UInt16 = 51820) -> SimulatedMachine<Primitives> {
        let entropy = SeededGenerator(seed: generator.next())
        let machine = SimulatedMachine(
            device: Device(cryptography: makePrimitives(), entropy: entropy), addresses: addresses, port: port,
            uplink: FaultyLink(seed: generator.next()))
        machine.device.setLink(up: true, at: clock.now)
        machines.append(machine)
        return machine
    }

    // MARK: Time

    /// Sets the time of day of all machines.
    public func setWallClock(_ time: WallClockTime) {
        clock.setWallClock(time)
    }

    /// Lets time pass up to `end`: everything that is due up to then happens, each at its time.
    public func run(until end: Instant) throws(SimulationError) {
        try settle()
        while let next = nextTime(), next <= end {
            clock.advance(to: max(next, clock.now))
            while let occurrence = queue.takeFirst(at: clock.now) { happen(occurrence) }
            try settle()
        }
        clock.advance(to: max(end, clock.now))
    }

    /// Lets `interval` pass.
    public func run(for interval: Interval) throws(SimulationError) {
        try run(until: clock.now + interval)
    }

    /// Lets what is due at this instant happen.
    public func run() throws(SimulationError) {
        try run(until: clock.now)
    }

    /// Moves the clock without asking anybody to do anything: all machines slept.
    public func suspend(for interval: Interval) {
        clock.advance(to: clock.now + interval)
    }

    /// Calls `body` when the time is `time`.
    public func schedule(at time: Instant, _ body: @escaping (SimulatedNetwork) -> Void) {
        queue.add(.script(body), at: max(time, clock.now))
    }

    /// When something happens next: a datagram arrives, a script runs or a timer runs out.
    public func nextTime() -> Instant? {
        var earliest = queue.firstTime
        for machine in machines where !machine.isAsleep {
            guard let deadline = machine.device.nextDeadline() else { continue }
            earliest = earliest.map { min($0, deadline) } ?? deadline
        }
        return earliest
    }

    // MARK: Traffic

    /// Sends a packet into the tunnel of a machine.
    @discardableResult
    public func send(_ packet: [UInt8], from machine: SimulatedMachine<Primitives>) -> PacketFate {
        let (fate, message, transmission) = machine.transmit(packet, at: clock.now)
        note(.packetIn(length: packet.count, fate), of: machine)
        if let transmission { send(message, transmission, from: machine) }
        return fate
    }

    /// Lets a datagram arrive at a machine at once, whoever sent it. Returns the packets that came out of the tunnel.
    @discardableResult
    public func inject(
        _ bytes: [UInt8], from source: Endpoint, to machine: SimulatedMachine<Primitives>, trafficClass: UInt8 = 0
    ) -> [[UInt8]] {
        let address = machine.addresses.first { $0.version == source.address.version } ?? source.address
        let datagram = SimulatedDatagram(
            time: clock.now, bytes: bytes, source: source, destination: Endpoint(address: address, port: machine.port),
            trafficClass: trafficClass)
        return deliver(datagram, to: machine)
    }

    /// Takes the datagrams that went to no machine since the last call.
    public func takeOutside() -> [SimulatedDatagram] {
        defer { outside.removeAll() }
        return outside
    }

    // MARK: Inside

    private func happen(_ occurrence: Occurrence) {
        switch occurrence {
        case .script(let body):
            body(self)
        case .arrival(let datagram, let sender):
            let receiver = machines.first {
                $0.port == datagram.destination.port && $0.addresses.contains(datagram.destination.address)
            }
            guard let receiver else {
                note(.lost(MessageKind(of: datagram.bytes)), of: machines[sender])
                return outside.append(datagram)
            }
            guard receiver.hasSockets, !receiver.isAsleep else {
                return note(.lost(MessageKind(of: datagram.bytes)), of: machines[sender])
            }
            deliver(datagram, to: receiver)
        }
    }

    @discardableResult
    private func deliver(_ datagram: SimulatedDatagram, to machine: SimulatedMachine<Primitives>) -> [[UInt8]] {
        note(.received(MessageKind(of: datagram.bytes)), of: machine)
        let packets = machine.receive(datagram, at: clock.now)
        for packet in packets { note(.packetOut(length: packet.count), of: machine) }
        return packets
    }

    /// Lets every device do what it has to do at this instant.
    private func settle() throws(SimulationError) {
        for (number, machine) in machines.enumerated() {
            var hops = 0
            while !machine.isAsleep, let (action, message) = machine.nextAction(at: clock) {
                hops += 1
                guard hops < Self.maximumHops else { throw .endlessLoop(machine: number) }
                switch action {
                case .send(_, let transmission): send(message, transmission, from: machine)
                case .report(let event):
                    machine.reports.append(event)
                    note(.reported(event), of: machine)
                    machine.reportHandler?(event)
                case .nothing: break
                }
            }
            if machine.isAsleep { continue }
            if machine.device.hasWork { throw .endlessLoop(machine: number) }
            if let deadline = machine.device.nextDeadline(), deadline <= clock.now {
                throw .deadlineNotInTheFuture(machine: number)
            }
        }
    }

    private func send(_ bytes: [UInt8], _ transmission: Transmission, from machine: SimulatedMachine<Primitives>) {
        let kind = MessageKind(of: bytes)
        note(.sent(kind, length: bytes.count, to: transmission.path.remote), of: machine)
        let fate = machine.uplink.fate()
        guard !fate.isEmpty, machine.hasSockets, let datagram = machine.datagram(bytes, transmission, at: clock.now)
        else {
            return note(.lost(kind), of: machine)
        }
        let sender = number(of: machine)
        for delay in fate { queue.add(.arrival(datagram, sender: sender), at: clock.now + delay) }
    }

    private func note(_ kind: LoggedEvent.Kind, of machine: SimulatedMachine<Primitives>) {
        guard keepsLog else { return }
        log.append(LoggedEvent(time: clock.now, machine: number(of: machine), kind: kind))
    }

    private func number(of machine: SimulatedMachine<Primitives>) -> Int {
        guard let number = machines.firstIndex(where: { $0 === machine }) else {
            preconditionFailure("a machine of another network")
        }
        return number
    }
}
