internal import Glibc

/// The descriptors that travel with a reply, in order. Those that nobody takes are closed.
struct DescriptorList: ~Copyable, Sendable {
    private var numbers: [Int32] = []
    private var taken = 0

    /// No descriptors.
    init() {}

    deinit {
        for index in taken..<numbers.count { _ = close(numbers[index]) }
    }

    /// How many are left.
    var count: Int { numbers.count - taken }

    /// The number of the first one that is left, which stays in the list.
    var firstNumber: Int32? { count > 0 ? numbers[taken] : nil }

    /// Adds a descriptor to the end.
    mutating func append(_ descriptor: consuming FileDescriptor) {
        numbers.append(descriptor.release())
    }

    /// Takes the first one that is left.
    mutating func takeFirst() -> FileDescriptor? {
        guard taken < numbers.count else { return nil }
        taken += 1
        return FileDescriptor(adopting: numbers[taken - 1])
    }
}
