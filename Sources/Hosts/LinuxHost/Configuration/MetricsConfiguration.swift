/// `metrics`: what is counted, for who reads it by HTTP in the format of OpenMetrics.
public struct MetricsConfiguration: Equatable, Sendable {
    /// Where it is read, at the path `/metrics`.
    public var listen: [AddressAndPort] = []

    /// Metrics that nobody can read.
    public init() {}
}

extension ConfigurationReader {
    /// Reads `metrics`.
    static func metrics(_ object: inout ConfigurationObject) -> MetricsConfiguration {
        var metrics = MetricsConfiguration()
        metrics.listen =
            object.requiredField("listen")?.set("a list of one address at least", atLeast: 1) { field in
                field.parsed("an address and a port such as 127.0.0.1:9153 or [::1]:9153") {
                    AddressAndPort(parsing: $0)
                }
            } ?? []
        return metrics
    }
}
