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
package struct MemoryPressurePolicy: Sendable {
    /// What the memory tier has, in bytes.
    package struct Usage: Hashable, Sendable {
        /// What the operator allows.
        package var configuredBytes: Int
        /// Everything reserved.
        package var usedBytes: Int
        /// What of it is reserved for fetches under way, and may be still to come.
        package var fetchBytes: Int

        package init(configuredBytes: Int, usedBytes: Int, fetchBytes: Int) {
            self.configuredBytes = configuredBytes
            self.usedBytes = usedBytes
            self.fetchBytes = fetchBytes
        }
    }

    /// What to do now.
    package struct Decision: Hashable, Sendable {
        /// The limit to hold; the configured one if there is no pressure.
        package var limitBytes: Int
        /// Why the limit held was lowered just now; nil if it was not.
        package var reductionReason: Reason?
        /// What the allocator holds and nobody uses is to be given back to the kernel.
        package var releasesFreeMemory: Bool
        /// When to look again.
        package var nextEvaluationDelay: Interval
    }

    /// Why less is held.
    package enum Reason: Hashable, Sendable {
        /// A bound is near.
        case lowHeadroom
        /// Everything waits for memory.
        case stall
    }

    /// The limit held under pressure; nil while the configured one is.
    private var reducedLimitBytes: Int?
    /// Since when there is more room than has to be.
    private var calmSince: Instant?
    private var grownAt = Instant.zero
    private var stallSeenAt: Instant?
    private var releasedAt: Instant?
    private var lastReduction: Reduction?
    /// The least that was reserved for fetches since `since`, and in the time before that.
    private var fetchReservation = (least: 0, leastBefore: 0, since: Instant.zero)

    /// What was evicted last, and what its working set was to be seen by.
    private struct Reduction: Sendable {
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
    private static let fetchReservationTime = Interval.seconds(1)
    private static let stallInterval = Interval.seconds(5)
    private static let stalledPermilleMax = 100
    private static let releaseInterval = Interval.seconds(20)

    /// Whether less than the configured limit is held.
    package var isLimitReduced: Bool { reducedLimitBytes != nil }

    /// Takes a new look; to be called again after the decision's ``DecisionTrace/nextLook``.
    package mutating func evaluate(
        now: Instant, usage: Usage, sample: SystemMemorySample
    ) -> Decision {
        let before = min(reducedLimitBytes ?? usage.configuredBytes, usage.configuredBytes)
        var usage = usage
        usage.fetchBytes = sustainedFetchBytes(now, fillingBytes: usage.fetchBytes)
        guard let tightest = sample.tightest else {
            reducedLimitBytes = nil
            return Decision(
                limitBytes: usage.configuredBytes, reductionReason: nil, releasesFreeMemory: false,
                nextEvaluationDelay: .seconds(5))
        }
        let credit = settlingBytes(now, headroomBytes: tightest.headroomBytes, tightest)
        var limit = before
        var reason: Reason?
        if let lower = lowered(before, usage, sample, creditBytes: credit) {
            limit = lower
            reason = .lowHeadroom
        } else if let lower = loweredByStall(before, usage, sample, now) {
            limit = lower
            reason = .stall
        } else if isCalm(before, usage, sample, now) {
            limit = grown(before, usage, sample, now)
        }
        if limit < before { calmSince = nil }
        if limit < min(before, usage.usedBytes) {
            lastReduction = Reduction(
                at: now, evictedBytes: min(before, usage.usedBytes) - limit,
                headroomBytes: tightest.headroomBytes)
        }
        reducedLimitBytes = limit < usage.configuredBytes ? limit : nil
        return Decision(
            limitBytes: limit, reductionReason: limit < before ? reason : nil,
            releasesFreeMemory: shouldReleaseFreeMemory(now, limit, usage, sample),
            nextEvaluationDelay: nextEvaluationDelay(limit, usage, sample))
    }

    // MARK: Room

    /// What of the bytes that are reserved for fetches has been so all the time.
    ///
    /// In a full tier fetches take the place of what was evicted for them, which the process still
    /// has: as they come and go, so does what is reserved, and the working set stays as it is.
    private mutating func sustainedFetchBytes(_ now: Instant, fillingBytes: Int) -> Int {
        if now - fetchReservation.since >= Self.fetchReservationTime {
            fetchReservation = (fillingBytes, fetchReservation.least, now)
        }
        fetchReservation.least = min(fetchReservation.least, fillingBytes)
        return min(fetchReservation.least, fetchReservation.leastBefore)
    }

    /// What the bound has left once the cache has grown to `limit`.
    private func room(of bound: SystemMemorySample.Bound, at limit: Int, _ use: Usage) -> Int {
        let growth = max(0, limit - (use.usedBytes - use.fetchBytes))
        return bound.headroomBytes - growth - growth / 8
    }

    /// Evicted bytes that the kernel may still count as taken.
    ///
    /// Nothing is expected any more where the next growth could be the last.
    private func settlingBytes(
        _ now: Instant, headroomBytes: Int, _ bound: SystemMemorySample.Bound
    ) -> Int {
        guard let lastReduction, now - lastReduction.at < Self.settlingTime,
            headroomBytes > bound.reserveBytes / 4
        else { return 0 }
        let awaited = lastReduction.headroomBytes + lastReduction.evictedBytes - headroomBytes
        return min(lastReduction.evictedBytes, max(0, awaited))
    }

    /// The limit that leaves every bound its reserve, if one has less than half of it; nil if none
    /// has.
    private func lowered(
        _ limit: Int, _ use: Usage, _ reading: SystemMemorySample, creditBytes: Int
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
        _ limit: Int, _ use: Usage, _ reading: SystemMemorySample, _ now: Instant
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
        _ limit: Int, _ use: Usage, _ reading: SystemMemorySample, _ now: Instant
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
        _ limit: Int, _ use: Usage, _ reading: SystemMemorySample, _ now: Instant
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
    private mutating func shouldReleaseFreeMemory(
        _ now: Instant, _ limit: Int, _ use: Usage, _ reading: SystemMemorySample
    ) -> Bool {
        let evicts = limit < use.usedBytes
        let isShort = reading.bounds.contains { room(of: $0, at: limit, use) < $0.reserveBytes }
        guard evicts || isShort else { return false }
        if !evicts, let releasedAt, now - releasedAt < Self.releaseInterval { return false }
        releasedAt = now
        return true
    }

    private func nextEvaluationDelay(_ limit: Int, _ use: Usage, _ reading: SystemMemorySample)
        -> Interval
    {
        var reserves = Int.max
        for bound in reading.bounds {
            reserves = min(reserves, bound.headroomBytes * 2 / bound.reserveBytes)
        }
        if reserves < 2 { return .milliseconds(100) }
        return reserves < 8 ? .milliseconds(250) : .seconds(1)
    }
}

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

/// What one look at the kernel's files says about the memory around the process.
package struct SystemMemorySample: Hashable, Sendable {
    /// One bound on the process's memory: a control group that it is in, or the machine.
    package struct Bound: Hashable, Sendable {
        /// For the operator: `control group /a/b`, or `machine`.
        package var name: String
        /// What everything inside may take, in bytes.
        package var limitBytes: Int
        /// What of it is taken and cannot be had back without giving something up: neither free
        /// nor page cache.
        package var workingBytes: Int

        package init(name: String, limitBytes: Int, workingBytes: Int) {
            self.name = name
            self.limitBytes = limitBytes
            self.workingBytes = workingBytes
        }

        /// What is left before the kernel has to kill; may be negative.
        package var headroomBytes: Int { limitBytes - workingBytes }

        /// What is kept free: an eighth, 16 MiB at least and 256 MiB at most.
        package var reserveBytes: Int { min(256 << 20, max(16 << 20, limitBytes / 8)) }
    }

    /// Every bound that could be read.
    package var bounds: [Bound]
    /// Share of the last ten seconds in which nothing ran because all of it waited for memory (PSI,
    /// `full avg10`), in thousandths; nil where the kernel does not say.
    package var stalledPermille: Int?

    package init(bounds: [Bound], stalledPermille: Int? = nil) {
        self.bounds = bounds
        self.stalledPermille = stalledPermille
    }

    /// The bound that the process is nearest to; nil if none could be read.
    package var tightest: Bound? {
        bounds.min { $0.headroomBytes - $0.reserveBytes < $1.headroomBytes - $1.reserveBytes }
    }
}
