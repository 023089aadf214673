extension WireGuardOptions {
    /// `SLUICE_OFFLOADS`: the offloads that are wanted, separated by commas, or `none`; all of them when it is not set.
    ///
    /// - Throws: `StartFailure` when a word names no offload.
    static func wantedOffloads() throws(StartFailure) -> Offloads {
        guard let text = variable("SLUICE_OFFLOADS") else { return Offloads() }
        return try StartFailure.wrapping("SLUICE_OFFLOADS") { () throws(Offloads.Invalid) in
            try Offloads(parsing: text)
        }
    }
}
