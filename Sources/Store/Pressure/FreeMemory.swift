import CLinux

/// What the allocator holds and nobody uses.
package enum FreeMemory {
    /// Gives whole pages of it back to the kernel (malloc_trim(3)).
    ///
    /// Threads that allocate meanwhile may wait for it, so it is not for every eviction.
    package static func returnToKernel() {
        _ = malloc_trim(0)
    }
}
