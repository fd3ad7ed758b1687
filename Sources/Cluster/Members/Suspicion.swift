import Ground

/// The time that a suspected member has to say that it lives (Lifeguard §IV.B).
///
/// It starts long and shrinks with every independent accuser: one node's word alone, which may be
/// cut off itself, takes long to count.
struct Suspicion: Hashable, Sendable {
    private(set) var startedAt: Instant
    private let least: Interval
    private let most: Interval
    /// Accusers beside the first after whom ``least`` holds.
    private let wanted: Int
    /// Who has missed an answer himself; those who only repeat it do not count.
    private(set) var accusers: [NodeID] = []
    /// Somebody has waited for the whole time already.
    private var isOverElsewhere = false

    /// For a cluster of `members` live ones.
    init(at now: Instant, members: Int, settings: Membership.Settings) {
        startedAt = now
        let scale = max(1, decimalLogarithm(members))
        let unit = Double(settings.suspicionMultiplier * settings.probeInterval.nanoseconds)
        least = Interval(nanoseconds: Int64(scale * unit))
        most = Interval(nanoseconds: least.nanoseconds * settings.suspicionMaxFactor)
        // Suspected and accuser cannot confirm.
        wanted = members - 2 < settings.confirmations ? 0 : settings.confirmations
    }

    var isConfirmed: Bool { accusers.count > wanted || wanted == 0 || isOverElsewhere }

    /// When the member is to be believed dead.
    var deadline: Instant {
        guard !isConfirmed else { return startedAt + least }
        let confirmations = max(0, accusers.count - 1)
        let share = decimalLogarithm(confirmations + 1) / decimalLogarithm(wanted + 1)
        let cut = Int64(share * Double(most.nanoseconds - least.nanoseconds))
        return startedAt + Interval(nanoseconds: most.nanoseconds - cut)
    }

    mutating func accused(by member: NodeID) {
        guard accusers.count <= wanted, !accusers.contains(member) else { return }
        accusers.append(member)
    }

    /// True if others than `member` have accused it enough.
    func isAccusedEnough(without member: NodeID) -> Bool {
        accusers.filter { $0 != member }.count > wanted
    }

    mutating func endedElsewhere() {
        isOverElsewhere = true
    }

    /// This process stood still for so long until now: the suspected one could not be heard.
    mutating func stoodStill(for lateness: Interval, at now: Instant) {
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
