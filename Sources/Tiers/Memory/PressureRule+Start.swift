extension MemoryPressurePolicy {
    /// What a process takes beside the limit, without a disk's index and clients' connections.
    private static let processBytes = 32 << 20

    /// The bound that has no room for `configuredBytes` beside the process, however little else
    /// there is, and the whole mebibytes for which it has; nil if every bound has room.
    ///
    /// For the bytes of a cache that is full and for what the allocator loses (an eighth) it leaves
    /// half of the reserve, as ``looked(now:use:reading:)`` does.
    package static func insufficientBound(
        _ configuredBytes: Int, in reading: SystemMemorySample
    ) -> (bound: SystemMemorySample.Bound, fittingBytes: Int)? {
        let fits = reading.bounds.map { bound in
            let room = bound.limitBytes - processBytes - bound.reserveBytes / 2
            return (bound: bound, fittingBytes: max(0, room - room / 9) & ~(1 << 20 - 1))
        }
        let least = fits.min { $0.fittingBytes < $1.fittingBytes }
        return least.flatMap { $0.fittingBytes < configuredBytes ? $0 : nil }
    }
}
