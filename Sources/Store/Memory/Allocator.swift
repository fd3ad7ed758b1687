import CLinux

/// The C library's allocator, which all memory of the process comes from.
package enum Allocator {
    /// Bounds the arenas that threads allocate from, on so many cores; to be called before there is
    /// a second thread, which may have one already.
    ///
    /// What is freed is used again in its own arena only, and an image is seldom freed by the loop
    /// that stored it. Two loops and six disk threads that churn a tier of 128 MiB take 205 MB with
    /// an arena each, 171 with two and 144 with one, at the same speed: a hit allocates nothing.
    package static func limitArenas(forCores cores: Int) {
        _ = mallopt(M_ARENA_MAX, CInt(max(1, cores / 4)))
    }

    /// Gives whole pages of what is free back to the kernel (malloc_trim(3)).
    ///
    /// Threads that allocate meanwhile may wait for it, so it is not for every eviction.
    package static func releaseFreeMemory() {
        _ = malloc_trim(0)
    }
}
