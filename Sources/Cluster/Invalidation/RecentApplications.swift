/// What was applied last, by the count of invalidations applied.
struct AppliedHistory: Sendable {
    /// Oldest first; nil stands for a floor.
    private var names: [RecordID?] = []
    /// How many were applied in all.
    private(set) var count: UInt64 = 0

    /// How many are remembered at least.
    static let countMin = 4_096

    mutating func append(_ name: RecordID?) {
        names.append(name)
        count += 1
        if names.count >= 2 * Self.countMin { names.removeFirst(Self.countMin) }
    }

    /// The names of what was applied after `start`; nil if they are not all remembered.
    func names(after start: UInt64) -> [RecordID]? {
        guard start < count else { return [] }
        let wanted = count - start
        guard wanted <= UInt64(names.count) else { return nil }
        var found: [RecordID] = []
        for name in names.suffix(Int(wanted)) {
            guard let name else { return nil }
            found.append(name)
        }
        return found
    }
}
