package import Ground

/// Decides how much of the memory limit may be used now, so that the kernel kills nobody.
///
/// The working set of the process's control groups and of the machine is what counts, not the
/// cache's own account: buffers of connections, the disk's index and other processes take memory
/// too. Page cache does not count; the kernel takes it back.
///
/// **Room.** What a bound has left once the cache has grown to the limit held (an eighth on top,
/// for what the allocator loses) is its *room*. The rule keeps it near the bound's reserve:
///
/// - below half of the reserve the limit held is lowered at once, so that room is the reserve;
/// - from there to one and a half of it nothing changes, so that what comes and goes within half a
///   reserve moves nothing;
/// - above, after ``calmTime`` without a break, the limit held grows by a 32nd of the configured
///   one a ``growthInterval``, until it is the configured one.
///
/// As the limit held is kept strictly, the cache itself cannot pass it between two looks, however
/// fast it fills. Other memory may grow by half a reserve a second, if the kernel has what was
/// evicted within 300 ms, and as long as there is a cache to give up: the limit held is never less
/// than ``floorBytes``.
///
/// **Stalls.** Where everything waited for memory for a tenth of the last ten seconds, the limit is
/// lowered too, by a 16th of the configured one every five seconds, but to no less than a half of
/// it: while there is room the cache may not be what is short.
package struct PressureRule: Sendable {
    /// What the memory tier has, in bytes.
    package struct Use: Hashable, Sendable {
        /// What the operator allows.
        package var configuredBytes: Int
        /// Everything reserved.
        package var usedBytes: Int
        /// What of it is reserved for fetches under way, and may be still to come.
        package var fillingBytes: Int

        package init(configuredBytes: Int, usedBytes: Int, fillingBytes: Int) {
            self.configuredBytes = configuredBytes
            self.usedBytes = usedBytes
            self.fillingBytes = fillingBytes
        }
    }

    /// What to do now.
    package struct Decision: Hashable, Sendable {
        /// The limit to hold; the configured one if there is no pressure.
        package var limitBytes: Int
        /// Why the limit held was lowered just now; nil if it was not.
        package var shrunk: Reason?
        /// What the allocator holds and nobody uses is to be given back to the kernel.
        package var returnsFreeMemory: Bool
        /// When to look again.
        package var nextLook: Interval
    }

    /// Why less is held.
    package enum Reason: Hashable, Sendable {
        /// A bound is near.
        case room
        /// Everything waits for memory.
        case stall
    }

    /// The limit held under pressure; nil while the configured one is.
    private var heldBytes: Int?
    /// Since when there is more room than has to be.
    private var calmSince: Instant?
    private var grownAt = Instant.zero
    private var stallSeenAt: Instant?
    private var returnedAt: Instant?
    private var lastShrink: Shrink?
    /// The least that was reserved for fetches since `since`, and in the time before that.
    private var filling = (least: 0, leastBefore: 0, since: Instant.zero)

    /// What was evicted last, and what its working set was to be seen by.
    private struct Shrink: Sendable {
        var at: Instant
        var evictedBytes: Int
        var headroomBytes: Int
    }

    package init() {}

    /// The least that is held: the least that the configured limit may be.
    package static let floorBytes = 16 << 20
    package static let calmTime = Interval.seconds(10)
    package static let growthInterval = Interval.seconds(1)
    /// How long evicted bytes may take until the kernel counts them as free.
    private static let settlingTime = Interval.seconds(1)
    /// What is reserved for fetches counts if it is for so long at least.
    private static let fillingTime = Interval.seconds(1)
    private static let stallInterval = Interval.seconds(5)
    private static let stalledPermilleMax = 100
    private static let returnInterval = Interval.seconds(20)

    /// Whether less than the configured limit is held.
    package var isYielding: Bool { heldBytes != nil }

    /// Takes a new look; to be called again after the decision's ``Decision/nextLook``.
    package mutating func looked(
        now: Instant, use: Use, reading: MemoryReading
    ) -> Decision {
        let before = min(heldBytes ?? use.configuredBytes, use.configuredBytes)
        var use = use
        use.fillingBytes = lastingBytes(now, fillingBytes: use.fillingBytes)
        guard let tightest = reading.tightest else {
            heldBytes = nil
            return Decision(
                limitBytes: use.configuredBytes, shrunk: nil, returnsFreeMemory: false,
                nextLook: .seconds(5))
        }
        let credit = settlingBytes(now, headroomBytes: tightest.headroomBytes, tightest)
        var limit = before
        var reason: Reason?
        if let lower = lowered(before, use, reading, creditBytes: credit) {
            limit = lower
            reason = .room
        } else if let lower = loweredByStall(before, use, reading, now) {
            limit = lower
            reason = .stall
        } else if isCalm(before, use, reading, now) {
            limit = grown(before, use, reading, now)
        }
        if limit < before { calmSince = nil }
        if limit < min(before, use.usedBytes) {
            lastShrink = Shrink(
                at: now, evictedBytes: min(before, use.usedBytes) - limit,
                headroomBytes: tightest.headroomBytes)
        }
        heldBytes = limit < use.configuredBytes ? limit : nil
        return Decision(
            limitBytes: limit, shrunk: limit < before ? reason : nil,
            returnsFreeMemory: returns(now, limit, use, reading),
            nextLook: nextLook(limit, use, reading))
    }

    // MARK: Room

    /// What of the bytes that are reserved for fetches has been so all the time.
    ///
    /// In a full tier fetches take the place of what was evicted for them, which the process still
    /// has: as they come and go, so does what is reserved, and the working set stays as it is.
    private mutating func lastingBytes(_ now: Instant, fillingBytes: Int) -> Int {
        if now - filling.since >= Self.fillingTime {
            filling = (fillingBytes, filling.least, now)
        }
        filling.least = min(filling.least, fillingBytes)
        return min(filling.least, filling.leastBefore)
    }

    /// What the bound has left once the cache has grown to `limit`.
    private func room(of bound: MemoryReading.Bound, at limit: Int, _ use: Use) -> Int {
        let growth = max(0, limit - (use.usedBytes - use.fillingBytes))
        return bound.headroomBytes - growth - growth / 8
    }

    /// Evicted bytes that the kernel may still count as taken.
    ///
    /// Nothing is expected any more where the next growth could be the last.
    private func settlingBytes(
        _ now: Instant, headroomBytes: Int, _ bound: MemoryReading.Bound
    ) -> Int {
        guard let lastShrink, now - lastShrink.at < Self.settlingTime,
            headroomBytes > bound.reserveBytes / 4
        else { return 0 }
        let awaited = lastShrink.headroomBytes + lastShrink.evictedBytes - headroomBytes
        return min(lastShrink.evictedBytes, max(0, awaited))
    }

    /// The limit that leaves every bound its reserve, if one has less than half of it; nil if none
    /// has.
    private func lowered(
        _ limit: Int, _ use: Use, _ reading: MemoryReading, creditBytes: Int
    ) -> Int? {
        var missing = 0
        for bound in reading.bounds {
            let room = room(of: bound, at: limit, use) + creditBytes
            if room < bound.reserveBytes / 2 { missing = max(missing, bound.reserveBytes - room) }
        }
        // While readers hold what was evicted, evicting more would not free it.
        guard missing > 0, use.usedBytes <= limit else { return nil }
        let lower = max(min(limit, Self.floorBytes), limit - missing)
        return lower < limit ? lower : nil
    }

    // MARK: Stalls

    private mutating func loweredByStall(
        _ limit: Int, _ use: Use, _ reading: MemoryReading, _ now: Instant
    ) -> Int? {
        guard (reading.stalledPermille ?? 0) >= Self.stalledPermilleMax else { return nil }
        if let stallSeenAt, now - stallSeenAt < Self.stallInterval { return nil }
        stallSeenAt = now
        let least = max(Self.floorBytes, use.configuredBytes / 2)
        let lower = max(least, min(limit, use.usedBytes) - use.configuredBytes / 16)
        return lower < limit ? lower : nil
    }

    // MARK: Growth

    /// True after a while in which every bound had room to spare.
    private mutating func isCalm(
        _ limit: Int, _ use: Use, _ reading: MemoryReading, _ now: Instant
    ) -> Bool {
        let hasRoom = reading.bounds.allSatisfy {
            room(of: $0, at: limit, use) >= $0.reserveBytes / 2 * 3
        }
        guard hasRoom, (reading.stalledPermille ?? 0) < Self.stalledPermilleMax / 4 else {
            calmSince = nil
            return false
        }
        let since = calmSince ?? now
        calmSince = since
        return now - since >= Self.calmTime
    }

    private mutating func grown(
        _ limit: Int, _ use: Use, _ reading: MemoryReading, _ now: Instant
    ) -> Int {
        guard now - grownAt >= Self.growthInterval else { return limit }
        let spare =
            reading.bounds.map { room(of: $0, at: limit, use) - $0.reserveBytes }.min() ?? 0
        let step = min(max(1 << 20, use.configuredBytes / 32), spare / 2)
        guard step > 0 else { return limit }
        grownAt = now
        return min(use.configuredBytes, limit + step)
    }

    // MARK: Pace

    /// At once where something is evicted, and now and then where there is less room than the
    /// reserve: what entries have left may be lying there, and is no reason to lower the limit.
    private mutating func returns(
        _ now: Instant, _ limit: Int, _ use: Use, _ reading: MemoryReading
    ) -> Bool {
        let evicts = limit < use.usedBytes
        let isShort = reading.bounds.contains { room(of: $0, at: limit, use) < $0.reserveBytes }
        guard evicts || isShort else { return false }
        if !evicts, let returnedAt, now - returnedAt < Self.returnInterval { return false }
        returnedAt = now
        return true
    }

    private func nextLook(_ limit: Int, _ use: Use, _ reading: MemoryReading) -> Interval {
        var reserves = Int.max
        for bound in reading.bounds {
            reserves = min(reserves, bound.headroomBytes * 2 / bound.reserveBytes)
        }
        if reserves < 2 { return .milliseconds(100) }
        return reserves < 8 ? .milliseconds(250) : .seconds(1)
    }
}
