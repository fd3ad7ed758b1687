/// Everything that is counted per site.
package enum SiteMetric: Hashable, CaseIterable, Sendable {
    /// Answers by how the cache took part in them.
    case requests(CacheOutcome)
    /// Of bodies given to clients, by the same.
    case bodyBytes(CacheOutcome)
    /// Of bodies that came from the origin.
    case originBytes

    package static let allCases: [SiteMetric] =
        CacheOutcome.allCases.map { .requests($0) } + CacheOutcome.allCases.map { .bodyBytes($0) }
        + [.originBytes]

    private static let outcomesCount = 9

    /// Its place among the counters.
    @inline(__always)
    var cell: Int {
        switch self {
        case .requests(let outcome): outcome.rawValue
        case .bodyBytes(let outcome): Self.outcomesCount + outcome.rawValue
        case .originBytes: 2 * Self.outcomesCount
        }
    }

    static let cellsCount = 2 * outcomesCount + 1
}
