import Ground

/// What brings the answer of a fetch: the disk, peers, another fetch, or an origin.
///
/// It reports to its ``LookupDriver`` and starts nobody. Confined to the loop of its hall.
protocol AnswerSource: AnyObject {
    /// Goes on or not, as the run says now: what two loops have said a moment ago may come in
    /// either order.
    func pace()
    /// Nobody wants the rest of the answer.
    func cancel()
    /// Others wait for the origin that it asks.
    var isContended: Bool { get }
}

extension AnswerSource {
    var isContended: Bool { false }
}

/// Who takes what a `FillRun` brings, on the loop of its own hall.
protocol FillReader: AnyObject {
    /// The fetch that it waits for has something for it; it may have gone.
    func woken(by run: FillRun)
}
