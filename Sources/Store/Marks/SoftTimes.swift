import Ground

/// When soft marks were applied, to a second.
struct SoftMarkTimes {
    private var applications: [(version: InvalidationVersion, at: Instant)] = []

    private static let timesMax = 4096

    /// Nil is before everything.
    mutating func record(_ version: InvalidationVersion, at now: Instant?) {
        if let now, let last = applications.last, last.at != Self.never, now - last.at < .seconds(1)
        {
            return
        }
        if applications.count == Self.timesMax { applications.removeFirst(Self.timesMax / 2) }
        applications.append((version, now ?? Self.never))
    }

    private static let never = Instant(nanoseconds: .min)

    /// The last time that is known before the mark, or that of the mark; nil if it is too long ago.
    func time(of version: InvalidationVersion) -> Instant? {
        let count = applications.partitionPoint { $0.version <= version }
        return count > 0 ? applications[count - 1].at : nil
    }
}
