import Ground

/// What brings the answer of a `FillRun`: the disk, a peer, or an origin.
///
/// Confined to the loop of its hall.
protocol FillSource: AnyObject {
    var run: FillRun { get }

    func start()
    /// Goes on or not, as the run says now.
    func pace()
    /// Nobody wants the rest of the answer.
    func cancel()
    /// Another node has asked this one to bring the answer: it waits for nobody who might wait for
    /// it.
    func becomeOwner()
    /// When it is to be told that the time has come; nil if not at all.
    var deadline: Instant? { get }
    func deadlineReached(_ now: Instant)
    /// Others wait for the origin that it asks.
    var isContended: Bool { get }
}

extension FillSource {
    func becomeOwner() {}
    var deadline: Instant? { nil }
    var isContended: Bool { false }
    func deadlineReached(_ now: Instant) {}
}

/// Who takes what a `FillRun` brings, on the loop of its own hall.
protocol FillReader: AnyObject {
    /// The fetch that it waits for has something for it; it may have gone.
    func woken(by run: FillRun)
}
