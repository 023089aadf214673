internal import Glibc

/// A list of C strings that ends with a null pointer, as argument and environment lists do. Owns them.
@safe struct CStringList: ~Copyable {
    /// The list, valid as long as this value lives.
    let pointer: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    /// Copies of `strings`.
    init(_ strings: [String]) {
        count = strings.count
        unsafe pointer = .allocate(capacity: count + 1)
        for (index, string) in strings.enumerated() {
            unsafe pointer.advanced(by: index).initialize(to: strdup(string))
        }
        unsafe pointer.advanced(by: count).initialize(to: nil)
    }

    deinit {
        // strdup allocated each of them.
        for index in 0..<count { unsafe free(pointer[index]) }
        unsafe pointer.deallocate()
    }
}
