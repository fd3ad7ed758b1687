/// What brings the answer of a `FillRun`: the disk, or an origin.
///
/// Confined to the loop of its hall.
protocol FillSource: AnyObject {
    var run: FillRun { get }

    func start()
    /// Goes on or not, as the run says now.
    func pace()
    /// Nobody wants the rest of the answer.
    func cancel()
}
