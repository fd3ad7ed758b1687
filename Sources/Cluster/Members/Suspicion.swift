import Ground

/// A suspicion of a member, with the time that remains to refute it (Lifeguard §IV.B).
///
/// The time starts long and shrinks with every independent accuser: a single accuser, which may be
/// cut off itself, takes longest.
struct Suspicion: Hashable, Sendable {
    private(set) var startedAt: Instant
    private let timeoutMin: Interval
    private let timeoutMax: Interval
    /// The number of accusers after the first with which ``timeoutMin`` applies.
    private let confirmationsNeeded: Int
    /// The members that missed a response themselves; those that only repeat it do not count.
    private(set) var confirmers: [NodeID] = []
    /// True if another member's suspicion has expired already.
    private var isExpiredElsewhere = false

    /// Creates a suspicion in a cluster of `members` live members.
    init(at now: Instant, members: Int, settings: MembershipSettings) {
        startedAt = now
        let scale = max(1, decimalLogarithm(members))
        let unit = Double(settings.suspicionMultiplier * settings.probeInterval.nanoseconds)
        timeoutMin = Interval(nanoseconds: Int64(scale * unit))
        timeoutMax = Interval(nanoseconds: timeoutMin.nanoseconds * settings.suspicionMaxFactor)
        // The suspected member and the accuser cannot confirm.
        confirmationsNeeded = members - 2 < settings.confirmations ? 0 : settings.confirmations
    }

    /// True if the shortest time applies.
    var isConfirmed: Bool {
        confirmers.count > confirmationsNeeded || confirmationsNeeded == 0 || isExpiredElsewhere
    }

    /// When the member is to be marked dead.
    var deadline: Instant {
        guard !isConfirmed else { return startedAt + timeoutMin }
        let confirmations = max(0, confirmers.count - 1)
        let share = decimalLogarithm(confirmations + 1) / decimalLogarithm(confirmationsNeeded + 1)
        let cut = Int64(share * Double(timeoutMax.nanoseconds - timeoutMin.nanoseconds))
        return startedAt + Interval(nanoseconds: timeoutMax.nanoseconds - cut)
    }

    /// Adds an independent accuser, unless it has accused already or there are enough.
    mutating func confirm(by member: NodeID) {
        guard confirmers.count <= confirmationsNeeded, !confirmers.contains(member) else { return }
        confirmers.append(member)
    }

    /// Returns true if enough members other than `member` have accused it.
    func isConfirmed(excluding member: NodeID) -> Bool {
        confirmers.filter { $0 != member }.count > confirmationsNeeded
    }

    /// Records that another member's suspicion has expired; the shortest time applies.
    mutating func markExpiredElsewhere() {
        isExpiredElsewhere = true
    }

    /// Extends the time by `lateness`, for which this process stood still and received nothing.
    mutating func processStalled(for lateness: Interval, at now: Instant) {
        startedAt = min(startedAt + lateness, now)
    }
}

/// Returns log10, interpolated linearly between powers of two: off by less than 0.03, and the same
/// on every machine.
func decimalLogarithm(_ number: Int) -> Double {
    guard number > 1 else { return 0 }
    let value = Double(number)
    let binary = Double(value.exponent) + (value.significand - 1)
    return binary * 0.301_029_995_663_981_2
}
