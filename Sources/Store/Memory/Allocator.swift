import CLinux

/// The C library's allocator, from which all memory of the process comes.
package enum Allocator {
    /// Limits the number of arenas to a quarter of the cores; call it before a second thread
    /// exists, since each thread may already have its own.
    ///
    /// Freed memory is reused only in its own arena, and an image is seldom freed by the loop that
    /// stored it. Two loops and six disk threads with a churning tier of 128 MiB use 205 MB with
    /// one arena each, 171 MB with two and 144 MB with one, at the same speed: a hit allocates
    /// nothing.
    package static func limitArenas(forCores cores: Int) {
        _ = mallopt(M_ARENA_MAX, CInt(max(1, cores / 4)))
    }

    /// Returns whole free pages to the kernel (malloc_trim(3)).
    ///
    /// Threads that allocate meanwhile may block, so do not call it for every eviction.
    package static func releaseFreeMemory() {
        _ = malloc_trim(0)
    }
}
