import Glibc
import LinuxHost

/// `sluice status --queries [--watch] [--json] [--config FILE]`: returns the exit status.
func showQueries(watch: Bool, json: Bool, config path: String) -> Int32 {
    guard let socket = controlSocket(of: path) else { return 1 }
    do throws(StatusFailure) {
        var client = try StatusClient(path: socket)
        var report = try client.queries()
        show(report, asJSON: json)
        while report.hasMore || watch {
            report = try client.queries(from: report.next, waits: watch)
            show(report, asJSON: json)
        }
        return 0
    } catch {
        complain(error.description)
        return 1
    }
}

private func show(_ report: QueryLogReport, asJSON json: Bool) {
    for line in json ? report.jsonLines : report.textLines { print(line) }
    // Who reads from a pipe wants every query when it happens: all streams are flushed.
    fflush(nil)
}
