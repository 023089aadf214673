import Glibc
import LinuxHost

/// `sluice status [--watch] [--json] [--config FILE]`: returns the exit status.
func showStatus(watch: Bool, json: Bool, config path: String) -> Int32 {
    guard let socket = controlSocket(of: path) else { return 1 }
    do throws(StatusFailure) {
        var client = try StatusClient(path: socket)
        var report = try client.status()
        show(report, asJSON: json)
        while watch {
            let next = try client.status(after: report.revision)
            // A minute without a change is answered too.
            if next.revision != report.revision { show(next, asJSON: json, isFirst: false) }
            report = next
        }
        return 0
    } catch {
        complain(error.description)
        return 1
    }
}

/// The control socket that a configuration names; nil when it cannot be read, which is said.
func controlSocket(of path: String) -> String? {
    do throws(ConfigurationErrors) {
        return try LoadedConfiguration.controlSocket(of: path)
    } catch {
        for line in error.lines { StandardStreams.writeErrorLine(line) }
        return nil
    }
}

private func show(_ report: StatusReport, asJSON json: Bool, isFirst: Bool = true) {
    if json {
        print(report.json)
    } else {
        if !isFirst { print() }
        print(report.text(now: UInt64(time(nil))), terminator: "")
    }
    // Who reads from a pipe wants every change when it happens: all streams are flushed.
    fflush(nil)
}
