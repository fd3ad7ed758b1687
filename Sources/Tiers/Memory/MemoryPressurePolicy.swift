package import Ground

/// The policy for how much of the memory limit may be used now, to avoid an out-of-memory kill.
///
/// It evaluates the working sets of the process's control groups and of the machine, not the
/// cache's own account, because connection buffers, the disk index and other processes use memory
/// too. Page cache does not count; the kernel reclaims it.
///
/// **Room.** The *room* of a bound is what it has left once the cache has grown to the current
/// limit, plus an eighth for the allocator's losses. The policy keeps it near the bound's reserve:
///
/// - below half of the reserve, the current limit is lowered at once, so that room equals the
///   reserve;
/// - from there to one and a half reserves nothing changes, so that variations within half a
///   reserve have no effect;
/// - above, after ``calmTime`` without interruption, the current limit grows by a 32nd of the
///   configured one per ``growthInterval``, up to the configured one.
///
/// The current limit is enforced strictly, so the cache itself cannot exceed it between two
/// evaluations, however fast it fills. Other memory may grow by half a reserve per second, if the
/// kernel receives evicted memory within 300 ms, and as long as there is a cache to evict: the
/// current limit is never below ``floorBytes``.
///
/// **Stalls.** If all tasks waited for memory for a tenth of the last ten seconds, the limit is
/// lowered too, by a 16th of the configured one every five seconds, but not below half of it: while
/// there is room, the cache may not be the cause.
package struct MemoryPressurePolicy: Sendable {
    /// The use of the memory tier in bytes.
    package struct Usage: Hashable, Sendable {
        /// The limit that the operator has configured.
        package var configuredBytes: Int
        /// All reserved bytes.
        package var usedBytes: Int
        /// The part reserved for active fetches, some of which may not have arrived yet.
        package var fetchBytes: Int

        /// Creates a use from its parts, in bytes.
        package init(configuredBytes: Int, usedBytes: Int, fetchBytes: Int) {
            self.configuredBytes = configuredBytes
            self.usedBytes = usedBytes
            self.fetchBytes = fetchBytes
        }
    }

    /// The result of an evaluation.
    package struct Decision: Hashable, Sendable {
        /// The current limit in bytes; the configured one if there is no pressure.
        package var limitBytes: Int
        /// The reason why this evaluation lowered the limit; `nil` if it did not.
        package var reductionReason: Reason?
        /// True if unused memory of the allocator is to be returned to the kernel.
        package var releasesFreeMemory: Bool
        /// The time until the next evaluation.
        package var nextEvaluationDelay: Interval
    }

    /// The reason for a lower limit.
    package enum Reason: Hashable, Sendable {
        /// The memory in use is near a bound.
        case lowHeadroom
        /// All tasks wait for memory.
        case stall
    }

    /// The current limit under pressure; `nil` while the configured one applies.
    private var reducedLimitBytes: Int?
    /// The start of the period with spare room; `nil` outside of one.
    private var calmSince: Instant?
    private var grownAt = Instant.zero
    private var stallSeenAt: Instant?
    private var releasedAt: Instant?
    private var lastReduction: Reduction?
    /// The least reservation for fetches since `since`, and in the period before.
    private var fetchReservation = (least: 0, leastBefore: 0, since: Instant.zero)

    /// The last eviction, and the headroom before it, by which its effect is recognised.
    private struct Reduction: Sendable {
        var at: Instant
        var evictedBytes: Int
        var headroomBytes: Int
    }

    /// Creates a policy without a reduced limit.
    package init() {}

    /// The lower bound of the current limit in bytes, also the smallest configurable limit.
    package static let floorBytes = 16 << 20
    /// The time with spare room before the limit grows.
    package static let calmTime = Interval.seconds(10)
    /// The time between two steps of growth.
    package static let growthInterval = Interval.seconds(1)
    /// The time until the kernel counts evicted bytes as free.
    private static let settlingTime = Interval.seconds(1)
    /// The time for which bytes must be reserved for fetches to count.
    private static let fetchReservationTime = Interval.seconds(1)
    private static let stallInterval = Interval.seconds(5)
    private static let stalledPermilleMax = 100
    private static let releaseInterval = Interval.seconds(20)

    /// True if the current limit is below the configured one.
    package var isLimitReduced: Bool { reducedLimitBytes != nil }

    /// Evaluates a sample; to be called again after ``Decision/nextEvaluationDelay``.
    ///
    /// Without any bound in the sample, the configured limit applies.
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

    /// Returns the bytes that were reserved for fetches throughout the last one to two periods.
    ///
    /// In a full tier fetches take the space of entries evicted for them, which the process still
    /// holds: the reservation varies while the working set does not.
    private mutating func sustainedFetchBytes(_ now: Instant, fillingBytes: Int) -> Int {
        if now - fetchReservation.since >= Self.fetchReservationTime {
            fetchReservation = (fillingBytes, fetchReservation.least, now)
        }
        fetchReservation.least = min(fetchReservation.least, fillingBytes)
        return min(fetchReservation.least, fetchReservation.leastBefore)
    }

    /// Returns the bytes that the bound has left once the cache has grown to `limit`.
    private func room(of bound: SystemMemorySample.Bound, at limit: Int, _ use: Usage) -> Int {
        let growth = max(0, limit - (use.usedBytes - use.fetchBytes))
        return bound.headroomBytes - growth - growth / 8
    }

    /// Returns the bytes of the last eviction that the kernel may still count as used.
    ///
    /// 0 after ``settlingTime``, or if the headroom is at most a quarter of the reserve, so that
    /// the next growth could exceed the bound.
    private func settlingBytes(
        _ now: Instant, headroomBytes: Int, _ bound: SystemMemorySample.Bound
    ) -> Int {
        guard let lastReduction, now - lastReduction.at < Self.settlingTime,
            headroomBytes > bound.reserveBytes / 4
        else { return 0 }
        let awaited = lastReduction.headroomBytes + lastReduction.evictedBytes - headroomBytes
        return min(lastReduction.evictedBytes, max(0, awaited))
    }

    /// Returns the limit, at least ``floorBytes``, that leaves every bound its reserve, if one has
    /// less than half of it; otherwise `nil`, also while more than `limit` is in use.
    private func lowered(
        _ limit: Int, _ use: Usage, _ reading: SystemMemorySample, creditBytes: Int
    ) -> Int? {
        var missing = 0
        for bound in reading.bounds {
            let room = room(of: bound, at: limit, use) + creditBytes
            if room < bound.reserveBytes / 2 { missing = max(missing, bound.reserveBytes - room) }
        }
        // While readers hold evicted bodies, further evictions would not free memory.
        guard missing > 0, use.usedBytes <= limit else { return nil }
        let lower = max(min(limit, Self.floorBytes), limit - missing)
        return lower < limit ? lower : nil
    }

    // MARK: Stalls

    /// Returns the limit lowered by one step if all tasks have waited for memory too long; `nil` if
    /// not, within ``stallInterval`` of the last step, or if the result would not be lower.
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

    /// True after ``calmTime`` in which every bound had spare room and tasks hardly waited for
    /// memory.
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

    /// Returns the limit raised by one step; unchanged within ``growthInterval`` of the last step,
    /// or if there is no spare room.
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

    // MARK: Intervals

    /// True if entries are evicted, and at intervals if there is less room than the reserve: memory
    /// freed by entries may cause that, and is no reason to lower the limit.
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

    /// Returns 100 ms, 250 ms or 1 s, by the smallest ratio of a bound's headroom to its reserve.
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
    /// The memory that a process uses beside the limit, without disk index and client connections.
    private static let processBytes = 32 << 20

    /// Returns the bound that has insufficient space for `configuredBytes`, even if little else is
    /// used; `nil` if every bound suffices.
    ///
    /// It allows for the bytes of a full cache, the allocator's losses (an eighth) and half of the
    /// reserve, as ``evaluate(now:usage:sample:)`` does. `fittingBytes` is the largest limit that
    /// fits, in whole mebibytes.
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

/// A sample of the kernel's memory statistics around the process.
package struct SystemMemorySample: Hashable, Sendable {
    /// A bound on the process's memory: a control group that contains it, or the machine.
    package struct Bound: Hashable, Sendable {
        /// The name for messages: `control group /a/b`, or `machine`.
        package var name: String
        /// The limit for everything inside, in bytes.
        package var limitBytes: Int
        /// The bytes used that cannot be reclaimed without loss: neither free nor page cache.
        package var workingBytes: Int

        /// Creates a bound from its parts.
        package init(name: String, limitBytes: Int, workingBytes: Int) {
            self.name = name
            self.limitBytes = limitBytes
            self.workingBytes = workingBytes
        }

        /// The bytes left before the kernel has to kill a process; may be negative.
        package var headroomBytes: Int { limitBytes - workingBytes }

        /// The bytes to keep free: an eighth of the limit, at least 16 MiB and at most 256 MiB.
        package var reserveBytes: Int { min(256 << 20, max(16 << 20, limitBytes / 8)) }
    }

    /// Every bound that could be read.
    package var bounds: [Bound]
    /// The share of the last ten seconds in which all tasks waited for memory (PSI, `full avg10`),
    /// in thousandths; `nil` if the kernel does not report it.
    package var stalledPermille: Int?

    /// Creates a sample from its parts.
    package init(bounds: [Bound], stalledPermille: Int? = nil) {
        self.bounds = bounds
        self.stalledPermille = stalledPermille
    }

    /// The bound with the least headroom beyond its reserve; `nil` if none could be read.
    package var tightest: Bound? {
        bounds.min { $0.headroomBytes - $0.reserveBytes < $1.headroomBytes - $1.reserveBytes }
    }
}
