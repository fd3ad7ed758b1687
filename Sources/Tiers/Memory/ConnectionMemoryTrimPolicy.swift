package import Ground

/// Decides when memory that closed connections left free is to be given back to the kernel, which
/// the allocator does not do by itself where something that lives on lies behind it.
///
/// Giving back holds up whoever allocates meanwhile, so it is for the calm after many have gone.
package struct ConnectionMemoryTrimPolicy: Sendable {
    /// The most that were open since memory was last given back.
    private var openMax = 0
    /// So many are open, a few more or less, since then.
    private var calm: (open: Int, since: Instant)?

    /// Fewer are not worth it.
    package static let closedMin = 512
    package static let calmTime = Interval.seconds(5)
    /// More than so many come or gone end the calm.
    private static let calmDeviationMax = 64

    package init() {}

    /// Takes a new look at how many connections are open; true if memory is to be given back now.
    package mutating func evaluate(now: Instant, openConnections: Int) -> Bool {
        openMax = max(openMax, openConnections)
        guard openMax - openConnections >= max(Self.closedMin, openMax / 2) else {
            calm = nil
            return false
        }
        guard let calm, abs(openConnections - calm.open) <= Self.calmDeviationMax else {
            calm = (openConnections, now)
            return false
        }
        guard now - calm.since >= Self.calmTime else { return false }
        openMax = openConnections
        self.calm = nil
        return true
    }
}
