import FoundationEssentials

/// How many allocations an operation of each benchmark may make at most.
struct Thresholds: Decodable {
    /// Allocations of one operation by the name of the benchmark.
    let allocations: [String: Double]

    /// Reads a JSON file.
    init(readingFileAt path: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: URL(filePath: path)))
    }

    /// What is wrong: benchmarks that allocate more, benchmarks without a threshold, and, when all of them ran, thresholds
    /// without a benchmark.
    func violations(of measurements: [Measurement], isComplete: Bool) -> [String] {
        var violations: [String] = []
        for measurement in measurements {
            guard let allowed = allocations[measurement.name] else {
                violations.append("\(measurement.name) has no threshold")
                continue
            }
            if measurement.allocations > allowed {
                violations.append(
                    "\(measurement.name) makes \(measurement.allocations) allocations an operation; \(allowed) allowed")
            }
        }
        if isComplete {
            let names = Set(measurements.map(\.name))
            for name in allocations.keys.sorted() where !names.contains(name) {
                violations.append("\(name) has a threshold, but there is no such benchmark")
            }
        }
        return violations
    }
}
