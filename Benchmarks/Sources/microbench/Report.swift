import FoundationEssentials

/// A table of measurements for people.
func table(of measurements: [Measurement]) -> String {
    let header = ["", "ns", "instructions", "allocations", "bytes"]
    let rows = measurements.map { measurement in
        [
            measurement.name, decimal(measurement.nanoseconds), measurement.instructions.map(decimal) ?? "-",
            decimal(measurement.allocations), decimal(measurement.bytes),
        ]
    }
    let widths = header.indices.map { column in ([header] + rows).map(\.[column].count).max() ?? 0 }
    return ([header] + rows).map { row in
        row.enumerated().map { column, cell in
            let padding = String(repeating: " ", count: widths[column] - cell.count)
            return column == 0 ? cell + padding : padding + cell
        }.joined(separator: "  ")
    }.joined(separator: "\n")
}

/// A number with one digit behind the point, or more when it is small but not zero.
private func decimal(_ value: Double) -> String {
    if value == 0 { return "0" }
    let scale = value < 0.1 ? 10_000.0 : 10.0
    let scaled = (value * scale).rounded()
    let whole = Int(scaled) / Int(scale)
    let fraction = String(Int(scaled) % Int(scale))
    return "\(whole)." + String(repeating: "0", count: (scale == 10 ? 1 : 4) - fraction.count) + fraction
}

/// Measurements for programs.
func json(of measurements: [Measurement]) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(measurements), as: UTF8.self)
}
