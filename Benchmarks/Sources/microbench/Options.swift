/// The command line.
struct Options {
    /// Print JSON.
    var isJSON = false
    /// Take less time for less exact figures.
    var isQuick = false
    /// The file with the allocations that are allowed, when they are to be checked.
    var thresholds: String?
    /// What the names of the benchmarks to run begin with; empty for all.
    var names: [String] = []

    static let usage = "microbench [--quick] [--json] [--check THRESHOLDS.json] [NAME…]"

    /// Reads arguments, without the program's name. Nil when they make no sense.
    init?(_ arguments: some Sequence<String>) {
        var arguments = arguments.makeIterator()
        while let argument = arguments.next() {
            switch argument {
            case "--json": isJSON = true
            case "--quick": isQuick = true
            case "--check":
                guard let path = arguments.next() else { return nil }
                thresholds = path
            default:
                if argument.hasPrefix("-") { return nil }
                names.append(argument)
            }
        }
    }
}
