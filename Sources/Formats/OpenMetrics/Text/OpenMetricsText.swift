/// Metrics in the text format of OpenMetrics 1.0, which Prometheus and others read.
///
/// ```
/// # TYPE sluice_dns_queries counter
/// # HELP sluice_dns_queries Queries of clients that were answered.
/// sluice_dns_queries_total{transport="udp",result="cached"} 17
/// # EOF
/// ```
public struct OpenMetricsText: Sendable {
    /// What the format is called by HTTP.
    public static let contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    /// What the values of a family are.
    public enum Kind: String, Sendable {
        /// It only grows, until the program starts anew.
        case counter
        /// It goes up and down.
        case gauge
        /// Something that does not change, said by labels.
        case info
        /// How many values were how large.
        case histogram
    }

    /// What tells the values of a family apart: names and values, in the order to write them.
    public typealias Labels = [(name: String, value: String)]

    private var lines = ""
    private var names: Set<String> = []
    private var family = ""

    /// No metrics yet.
    public init() {}

    /// The whole text, with its end.
    public var text: String { lines + "# EOF\n" }

    /// Begins a family; what is added belongs to it.
    ///
    /// - Parameters:
    ///   - name: Its name, without `_total` and the like, with the unit at its end where it has one. No other family has it.
    ///   - unit: The unit of its values, in full and plural: `seconds`, `bytes`.
    ///   - help: A sentence about it.
    public mutating func begin(_ name: String, _ kind: Kind, unit: String? = nil, help: String) {
        precondition(Self.isName(name) && names.insert(name).inserted, "a family that is there already, or has no name")
        precondition(unit.map { name.hasSuffix("_\($0)") } ?? true, "a family whose name does not end with its unit")
        family = name
        lines += "# TYPE \(name) \(kind.rawValue)\n"
        if let unit { lines += "# UNIT \(name) \(unit)\n" }
        lines += "# HELP \(name) \(Self.escaped(help))\n"
    }

    /// Adds a value to a family of counters.
    public mutating func addCount(_ value: UInt64, _ labels: Labels = []) { add("_total", labels, String(value)) }

    /// Adds a value with a fraction to a family of counters.
    public mutating func addCount(_ value: Double, _ labels: Labels = []) { add("_total", labels, Self.text(value)) }

    /// Adds a value to a family of gauges.
    public mutating func addGauge(_ value: some BinaryInteger, _ labels: Labels = []) {
        add("", labels, String(value))
    }

    /// Adds a value with a fraction to a family of gauges.
    public mutating func addGauge(_ value: Double, _ labels: Labels = []) { add("", labels, Self.text(value)) }

    /// Adds what a family of information says.
    public mutating func addInfo(_ labels: Labels) { add("_info", labels, "1") }

    /// Adds a histogram to a family of them.
    ///
    /// - Parameters:
    ///   - bounds: The largest value of each bucket but the last, which has none; each larger than the one before.
    ///   - counts: How many values each bucket has by itself: one more than there are bounds.
    ///   - sum: The sum of all values.
    public mutating func addHistogram(bounds: [Double], counts: [UInt64], sum: Double, _ labels: Labels = []) {
        precondition(counts.count == bounds.count + 1, "a histogram with too few or too many buckets")
        var total: UInt64 = 0
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? Self.text(bounds[index]) : "+Inf"
            add("_bucket", labels + [("le", bound)], String(total))
        }
        add("_count", labels, String(total))
        add("_sum", labels, Self.text(sum))
    }

    private mutating func add(_ suffix: String, _ labels: Labels, _ value: String) {
        precondition(!family.isEmpty, "a value of no family")
        lines += family + suffix
        if !labels.isEmpty {
            lines += "{"
            for (index, label) in labels.enumerated() {
                precondition(Self.isName(label.name), "a label without a name")
                lines += "\(index > 0 ? "," : "")\(label.name)=\"\(Self.escaped(label.value))\""
            }
            lines += "}"
        }
        lines += " \(value)\n"
    }

    /// A number as the format writes it.
    static func text(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return value.description
    }

    /// A text in which nothing ends it, or the line.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    private static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= first) else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
