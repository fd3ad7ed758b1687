package import Ground

/// Decides when memory that closed connections left free is to be given back to the kernel, which
/// the allocator does not do by itself where something that lives on lies behind it.
///
/// Giving back holds up whoever allocates meanwhile, so it is for the calm after many have gone.
package struct ConnectionMemoryRule: Sendable {
    /// The most that were open since memory was last given back.
    private var most = 0
    /// So many are open, a few more or less, since then.
    private var calm: (open: Int, since: Instant)?

    /// Fewer are not worth it.
    package static let closedMin = 512
    package static let calmTime = Interval.seconds(5)
    /// More than so many come or gone end the calm.
    private static let stirMax = 64

    package init() {}

    /// Takes a new look at how many connections are open; true if memory is to be given back now.
    package mutating func looked(now: Instant, open: Int) -> Bool {
        most = max(most, open)
        guard most - open >= max(Self.closedMin, most / 2) else {
            calm = nil
            return false
        }
        guard let calm, abs(open - calm.open) <= Self.stirMax else {
            calm = (open, now)
            return false
        }
        guard now - calm.since >= Self.calmTime else { return false }
        most = open
        self.calm = nil
        return true
    }
}
