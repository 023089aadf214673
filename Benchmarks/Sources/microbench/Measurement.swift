import CMeasurement
import OpenSSLCrypto

/// What one operation of a benchmark takes.
struct Measurement: Encodable {
    /// The benchmark.
    let name: String
    /// Nanoseconds of processor time, of the fastest run: what slows a run down is never the benchmark itself.
    let nanoseconds: Double
    /// Instructions in user mode, of the run with the fewest; nil when the machine does not count them.
    let instructions: Double?
    /// Allocations, of all runs.
    let allocations: Double
    /// Bytes allocated, of all runs.
    let bytes: Double
}

/// How thoroughly to measure.
struct Effort {
    /// Runs go on for this many nanoseconds of processor time...
    let nanoseconds: UInt64
    /// ... and at least this often.
    let runs: Int

    static let full = Effort(nanoseconds: 300_000_000, runs: 20)
    static let quick = Effort(nanoseconds: 30_000_000, runs: 5)
    /// Allocations do not wander.
    static let allocationsOnly = Effort(nanoseconds: 0, runs: 5)
}

/// Runs `benchmark` and says what one operation took.
func measure(
    _ name: String, _ benchmark: consuming some Benchmark & ~Copyable, effort: Effort, instructionCounter: Int32?
) -> Measurement {
    var benchmark = benchmark
    benchmark.prepare()
    benchmark.run()

    var (runs, spent, fastest, fewest) = (0, UInt64(0), UInt64.max, UInt64.max)
    var allocated = measurement_heap_use(count: 0, bytes: 0)
    while runs < effort.runs || spent < effort.nanoseconds {
        benchmark.prepare()
        let allocationsBefore = measurement_current_heap_use()
        let instructionsBefore = instructionCounter.map { measurement_instructions($0) }
        let start = measurement_thread_nanoseconds()
        benchmark.run()
        let nanoseconds = measurement_thread_nanoseconds() - start
        if let instructionCounter, let instructionsBefore {
            fewest = min(fewest, measurement_instructions(instructionCounter) - instructionsBefore)
        }
        let allocationsAfter = measurement_current_heap_use()
        allocated.count += allocationsAfter.count - allocationsBefore.count
        allocated.bytes += allocationsAfter.bytes - allocationsBefore.bytes
        fastest = min(fastest, nanoseconds)
        spent += nanoseconds
        runs += 1
    }
    let operations = Double(benchmark.operations)
    return Measurement(
        name: name, nanoseconds: Double(fastest) / operations,
        instructions: instructionCounter == nil ? nil : Double(fewest) / operations,
        allocations: Double(allocated.count) / (operations * Double(runs)),
        bytes: Double(allocated.bytes) / (operations * Double(runs)))
}

/// True when the heap's use by Swift and by C libraries is seen: figures of zero mean something then.
func countsAllocations() -> Bool {
    let start = measurement_current_heap_use()
    let array = [UInt8](repeating: 1, count: 5000)
    let middle = measurement_current_heap_use()
    let cryptography = try? OpenSSLCryptography()
    let end = measurement_current_heap_use()
    measurement_consume(UInt64(array[4999]))
    return middle.bytes >= start.bytes + 5000 && cryptography != nil && end.count > middle.count + 1
}
