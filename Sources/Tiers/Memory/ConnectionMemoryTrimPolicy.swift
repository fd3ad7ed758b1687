package import Ground

/// The policy for returning memory freed by closed connections to the kernel.
///
/// The allocator does not return it by itself if a live allocation follows it. Returning memory
/// blocks concurrent allocations, so it is done in a calm period after many connections have
/// closed.
package struct ConnectionMemoryTrimPolicy: Sendable {
    /// The maximum number of open connections since memory was last returned.
    private var openMax = 0
    /// The start of the calm period, and the number of connections that were open then.
    private var calm: (open: Int, since: Instant)?

    /// The decrease in the number of connections from which on memory is returned, if it is also at
    /// least half of their maximum.
    package static let closedMin = 512
    /// The time without larger changes before memory is returned.
    package static let calmTime = Interval.seconds(5)
    /// The change in the number of connections that ends a calm period.
    private static let calmDeviationMax = 64

    /// Creates a policy that has seen no connections.
    package init() {}

    /// Evaluates the number of open connections.
    ///
    /// - Returns: true if memory is to be returned now; the maximum is then counted anew.
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
