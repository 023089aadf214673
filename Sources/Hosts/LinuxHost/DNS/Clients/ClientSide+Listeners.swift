internal import Glibc
internal import IPPacket

extension ClientSide {
    /// Opens sockets at addresses, or throws and leaves none.
    mutating func openListeners(
        at addresses: [AddressAndPort], sharesPort: (AddressAndPort) -> Bool
    ) throws(ClientSideError) -> [Listener] {
        var opened: [Listener] = []
        for address in addresses {
            let opening = ListenerOpening(
                address: address, number: nextNumber, threads: workers.count + 1, sharesPort: sharesPort(address))
            opened.append(try opening.open())
            nextNumber += 1
        }
        return opened
    }

    /// Has the further threads, which must not run, watch their sockets of these listeners, and no others.
    func giveSockets(of listeners: [Listener]) throws(ClientSideError) {
        do throws(SystemCallError) {
            for (index, worker) in workers.enumerated() { try worker.watch(listeners.map { $0.datagrams[index + 1] }) }
        } catch {
            throw .system(error)
        }
    }

    /// Starts watching the sockets of a listener.
    func register(_ listener: Listener, with loop: borrowing EventLoop) throws(SystemCallError) {
        try loop.register(
            listener.datagrams[0].descriptor, token: ClientSideToken.datagrams(listener.number).rawValue,
            interest: .readable)
        try loop.register(
            listener.streams, token: ClientSideToken.listener(listener.number).rawValue,
            interest: pausedUntil == nil ? .readable : [])
    }

    /// Stops watching the sockets of a listener, if they were.
    func unregister(_ listener: Listener, from loop: borrowing EventLoop) {
        try? loop.unregister(listener.datagrams[0].descriptor)
        try? loop.unregister(listener.streams)
    }

    // MARK: Another configuration

    /// Listens at other addresses. What stays is not touched, and clients that are connected stay, whatever they connected to. All new
    /// sockets are open before an old one is closed; when one cannot be, everything is as it was.
    mutating func changeListeners(
        to addresses: [AddressAndPort], _ loop: borrowing EventLoop
    ) throws(ClientSideError) {
        let addresses = addresses.withoutRepetitions
        let leaving = listeners.filter { !addresses.contains($0.address) }
        let coming = addresses.filter { address in !listeners.contains { $0.address == address } }
        if leaving.isEmpty, coming.isEmpty { return }
        // Those that overlap with new ones share their ports as long as both are open.
        let overlapping = leaving.filter { old in coming.contains { $0.overlaps(old.address) } }
        do throws(SystemCallError) {
            for listener in overlapping { try listener.setSharesPort(true) }
        } catch {
            throw .system(error)
        }
        let opened: [Listener]
        do throws(ClientSideError) {
            opened = try openListeners(
                at: coming, sharesPort: { new in overlapping.contains { $0.address.overlaps(new) } })
        } catch {
            for listener in overlapping { restoreSharing(of: listener) }
            throw error
        }
        try replace(leaving, by: opened, in: addresses, loop)
        for listener in opened { restoreSharing(of: listener) }
    }

    private mutating func replace(
        _ leaving: [Listener], by opened: [Listener], in addresses: [AddressAndPort], _ loop: borrowing EventLoop
    ) throws(ClientSideError) {
        let all = listeners + opened
        let staying = addresses.compactMap { address in all.first { $0.address == address } }
        let workersRan = workersRun
        stopWorkers()
        do throws(ClientSideError) {
            do throws(SystemCallError) {
                for listener in opened { try register(listener, with: loop) }
            } catch {
                throw .system(error)
            }
            try giveSockets(of: staying)
        } catch {
            for listener in opened { unregister(listener, from: loop) }
            // The workers watch what they watched before, or get it back: nothing is registered anew for that.
            try? giveSockets(of: listeners)
            if workersRan { try? startWorkers() }
            throw error
        }
        for listener in leaving { unregister(listener, from: loop) }
        listeners = staying
        guard workersRan else { return }
        do throws(SystemCallError) { try startWorkers() } catch { throw .system(error) }
    }

    /// Has a listener share its ports no longer, unless its own threads do.
    private func restoreSharing(of listener: Listener) {
        // It was possible to set it.
        try? listener.setSharesPort(false)
    }
}

extension Listener {
    /// Lets a listener of this process that is bound later have the same ports, or no longer.
    fileprivate func setSharesPort(_ shares: Bool) throws(SystemCallError) {
        try streams.set(.sharedPort, to: shares ? 1 : 0)
        // Sockets of several threads share their port with each other in any case.
        if datagrams.count == 1 { try datagrams[0].descriptor.set(.sharedPort, to: shares ? 1 : 0) }
    }
}

extension [AddressAndPort] {
    /// Each once: an address that is named twice is listened at once.
    var withoutRepetitions: [AddressAndPort] {
        var seen: Set<AddressAndPort> = []
        return filter { seen.insert($0).inserted }
    }
}

extension AddressAndPort {
    /// True when sockets at both addresses cannot be bound without sharing.
    func overlaps(_ other: AddressAndPort) -> Bool {
        guard port == other.port, address.version == other.address.version else { return false }
        return address == other.address || address.isUnspecified || other.address.isUnspecified
    }
}
