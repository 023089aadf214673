import CMeasurement
import Glibc

// Time, allocations and, where the machine counts them, instructions of an operation on each hot path. See scripts/bench.

var standardError = StandardError()
guard let options = Options(CommandLine.arguments.dropFirst()) else {
    print("usage: \(Options.usage)", to: &standardError)
    exit(2)
}
guard countsAllocations() else {
    print("microbench: allocations are not counted", to: &standardError)
    exit(1)
}
let counter = measurement_open_instruction_counter()
var suite = Suite(options, instructionCounter: counter < 0 ? nil : counter)
do {
    let thresholds = try options.thresholds.map { try Thresholds(readingFileAt: $0) }
    try suite.run()
    guard let thresholds else {
        print(options.isJSON ? try json(of: suite.measurements) : table(of: suite.measurements))
        exit(0)
    }
    let violations = thresholds.violations(of: suite.measurements, isComplete: options.names.isEmpty)
    for violation in violations { print(violation) }
    if !violations.isEmpty { exit(1) }
    print("\(suite.measurements.count) benchmarks allocate no more than they may")
} catch {
    print("microbench: \(error)", to: &standardError)
    exit(1)
}
