internal import Glibc

/// The numbers and names of interfaces in the process's network namespace.
enum InterfaceNumber {
    /// The number of the interface with a name; nil when there is none.
    static func number(_ name: String) -> UInt32? {
        let index = unsafe if_nametoindex(name)
        return index == 0 ? nil : index
    }

    /// The name of the interface with a number; nil when there is none.
    static func name(_ index: UInt32) -> String? {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(IF_NAMESIZE)) { name in
            // The buffer has the size that the function asks for.
            guard let base = name.baseAddress, unsafe if_indextoname(index, base) != nil else { return nil }
            return unsafe String(cString: base)
        }
    }
}
