internal import CLinux

/// The pages of the program's code, which are resident memory too.
enum CodePages {
    /// Lets go of all of them. To be called once a daemon is up: most of what brought it up never runs again, and what does comes
    /// back from the page cache, some pages at a time.
    static func release() {
        clinux_release_code()
    }
}
