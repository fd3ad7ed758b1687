/// What who asks the admin port may do; each role may do what those before it may.
package enum AdminRole: String, CaseIterable, Comparable, Sendable {
    /// See everything, and change nothing.
    case read
    /// Have entries forgotten, or fetched ahead.
    case purge
    /// Take nodes out of service, and change how they work.
    case admin

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    package static func < (one: AdminRole, other: AdminRole) -> Bool { one.rank < other.rank }
}
