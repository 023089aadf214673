import LinuxHost

/// `sluice [-f] IFNAME`: returns the exit status.
func runInterface(named name: InterfaceName, isForeground: Bool) -> Int32 {
    let readiness = ReadinessReport.fromEnvironment()
    if isForeground || WireGuardOptions.environmentAsksForForeground {
        return serve(name, readiness)
    }
    do {
        switch try Detachment.start(
            arguments: ["--foreground", name.string], keepsOutput: WireGuardOptions.environmentAsksForLog)
        {
        case .ready: return 0
        case .failed(let reason): complain(reason)
        case .died(let status): complain("the daemon ended before it was ready (wait status \(status))")
        }
    } catch {
        complain("cannot start the daemon: \(error)")
    }
    return 1
}

private func serve(_ name: InterfaceName, _ readiness: consuming ReadinessReport?) -> Int32 {
    let log = Log(level: WireGuardOptions.logLevel, name: name.string)
    let daemon: WireGuardDaemon
    do {
        daemon = try WireGuardDaemon(WireGuardOptions(name: name), log: log)
    } catch {
        switch consume readiness {
        case .some(let readiness): readiness.failed(error.description)
        case .none: complain(error.description)
        }
        return 1
    }
    switch consume readiness {
    case .some(let readiness): readiness.ready()
    case .none: break
    }
    do {
        try daemon.run()
        return 0
    } catch {
        complain("\(error)")
        return 1
    }
}

/// Writes a line to standard error.
func complain(_ line: String) {
    StandardStreams.writeErrorLine("sluice: \(line)")
}
