import Ground

/// The time that a suspected member has to say that it lives (Lifeguard §IV.B).
///
/// It starts long and shrinks with every independent accuser: one node's word alone, which may be
/// cut off itself, takes long to count.
struct Suspicion: Hashable, Sendable {
    private(set) var startedAt: Instant
    private let timeoutMin: Interval
    private let timeoutMax: Interval
    /// Accusers beside the first after whom ``least`` holds.
    private let confirmationsNeeded: Int
    /// Who has missed an answer himself; those who only repeat it do not count.
    private(set) var confirmers: [NodeID] = []
    /// Somebody has waited for the whole time already.
    private var isExpiredElsewhere = false

    /// For a cluster of `members` live ones.
    init(at now: Instant, members: Int, settings: Membership.Settings) {
        startedAt = now
        let scale = max(1, decimalLogarithm(members))
        let unit = Double(settings.suspicionMultiplier * settings.probeInterval.nanoseconds)
        timeoutMin = Interval(nanoseconds: Int64(scale * unit))
        timeoutMax = Interval(nanoseconds: timeoutMin.nanoseconds * settings.suspicionMaxFactor)
        // Suspected and accuser cannot confirm.
        confirmationsNeeded = members - 2 < settings.confirmations ? 0 : settings.confirmations
    }

    var isConfirmed: Bool {
        confirmers.count > confirmationsNeeded || confirmationsNeeded == 0 || isExpiredElsewhere
    }

    /// When the member is to be believed dead.
    var deadline: Instant {
        guard !isConfirmed else { return startedAt + timeoutMin }
        let confirmations = max(0, confirmers.count - 1)
        let share = decimalLogarithm(confirmations + 1) / decimalLogarithm(confirmationsNeeded + 1)
        let cut = Int64(share * Double(timeoutMax.nanoseconds - timeoutMin.nanoseconds))
        return startedAt + Interval(nanoseconds: timeoutMax.nanoseconds - cut)
    }

    mutating func confirm(by member: NodeID) {
        guard confirmers.count <= confirmationsNeeded, !confirmers.contains(member) else { return }
        confirmers.append(member)
    }

    /// True if others than `member` have accused it enough.
    func isConfirmed(excluding member: NodeID) -> Bool {
        confirmers.filter { $0 != member }.count > confirmationsNeeded
    }

    mutating func markExpiredElsewhere() {
        isExpiredElsewhere = true
    }

    /// This process stood still for so long until now: the suspected one could not be heard.
    mutating func processStalled(for lateness: Interval, at now: Instant) {
        startedAt = min(startedAt + lateness, now)
    }
}

/// log10, straight between powers of two: off by less than 0.03, and the same on every machine.
func decimalLogarithm(_ number: Int) -> Double {
    guard number > 1 else { return 0 }
    let value = Double(number)
    let binary = Double(value.exponent) + (value.significand - 1)
    return binary * 0.301_029_995_663_981_2
}
