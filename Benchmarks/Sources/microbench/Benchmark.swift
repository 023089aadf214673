/// Something whose speed and allocations are to be known.
///
/// It is run many times. What it needs is made before the first run, and everything it allocates only once is allocated
/// during a run that does not count.
protocol Benchmark: ~Copyable {
    /// How many operations one call of ``run()`` does: enough for the clock not to count.
    var operations: Int { get }
    /// Makes ready for one run. Not measured.
    mutating func prepare()
    /// Does the operations.
    mutating func run()
}

extension Benchmark where Self: ~Copyable {
    mutating func prepare() {}
}

/// Takes an array out of where it is stored, so that a span of it does not lock the whole that it is stored in.
func takeBytes(of stored: inout [UInt8]) -> [UInt8] {
    var taken: [UInt8] = []
    swap(&taken, &stored)
    return taken
}
