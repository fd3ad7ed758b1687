import Ground

/// When soft marks were applied, to a second.
struct SoftTimes {
    private var times: [(stamp: Stamp, at: Instant)] = []

    private static let timesMax = 4096

    /// Nil is before everything.
    mutating func note(_ stamp: Stamp, at now: Instant?) {
        if let now, let last = times.last, last.at != Self.never, now - last.at < .seconds(1) {
            return
        }
        if times.count == Self.timesMax { times.removeFirst(Self.timesMax / 2) }
        times.append((stamp, now ?? Self.never))
    }

    private static let never = Instant(nanoseconds: .min)

    /// The last time that is known before the mark, or that of the mark; nil if it is too long ago.
    func time(of stamp: Stamp) -> Instant? {
        let count = times.sortedCount { $0.stamp <= stamp }
        return count > 0 ? times[count - 1].at : nil
    }
}
