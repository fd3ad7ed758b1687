import NIOCore

/// What carries one question and its answer: a connection of HTTP/1.1, or a stream of HTTP/2.
///
/// It tells its hop what it finds, through ``OriginTransaction/found(_:isReusable:)`` and its like,
/// and holds what comes while the hop is paused.
protocol OriginTransport: AnyObject {
    /// Writes a request with what there is of its body, and waits for the answer.
    func send(_ request: OriginFetchRequest, _ body: OutgoingBodyPart)
    /// Writes more of the request's body; a hop that is still there is told when that is done.
    func write(_ body: OutgoingBodyPart)
    /// False while much of what was written has not gone, or there is nothing to write to.
    var isWritable: Bool { get }
    /// All that was written has gone.
    var isFlushed: Bool { get }
    /// Hands over what is held while the hop wants it, then what comes.
    func deliverPending()
    /// The origin has kept silent for so long that the hop gives up.
    func responseTimedOut()
    /// The hop is over; unless `closing`, the answer and the request are whole.
    func release(closing: Bool)
}
