import LinuxHost

/// `sluice dns query`: returns the exit status, which is dig's where it makes sense.
func queryDNS(_ options: DNSQueryOptions) -> Int32 {
    let query: DNSQuery
    do throws(ImpossibleDNSQuery) {
        query = try DNSQuery(options)
    } catch {
        complain(error.description)
        complain("Try 'sluice --help'.")
        return 2
    }
    switch query.run() {
    case .answer(let text):
        print(text, terminator: "")
        return 0
    case .noAnswer(let reason):
        complain(reason)
        return 9
    case .untrusted(let reason), .failed(let reason):
        complain(reason)
        return 1
    }
}
