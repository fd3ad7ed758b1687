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
        var (low, high) = (0, times.count)
        while low < high {
            let middle = (low + high) / 2
            if times[middle].stamp <= stamp { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? times[low - 1].at : nil
    }
}
