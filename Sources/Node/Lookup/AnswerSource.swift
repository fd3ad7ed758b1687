import Ground

/// What brings the answer of a fetch: the disk, peers, another fetch, or an origin.
///
/// It reports to its ``LookupDriver`` and starts nobody. Confined to the loop of its hall.
protocol ResponseSource: AnyObject {
    /// Goes on or not, as the run says now: what two loops have said a moment ago may come in
    /// either order.
    func updateFlow()
    /// Nobody wants the rest of the answer.
    func cancel()
    /// Others wait for the origin that it asks.
    var isContended: Bool { get }
}

extension ResponseSource {
    var isContended: Bool { false }
}

/// Who takes what a `ActiveFetch` brings, on the loop of its own hall.
protocol FetchReader: AnyObject {
    /// The fetch that it waits for has something for it; it may have gone.
    func fetchAdvanced(by run: ActiveFetch)
}
