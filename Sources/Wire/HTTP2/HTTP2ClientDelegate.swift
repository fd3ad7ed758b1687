/// Who made the requests of a connection to an origin; must outlive the session.
package protocol HTTP2ClientDelegate: AnyObject {
    /// An interim answer, 1xx, came before the answer; its head as in ``answerArrived``.
    func interimResponseReceived(_ stream: HTTP2Stream, status: Int, head: Span<UInt8>)
    /// The head of the answer came, written as the HTTP/1.1 head that says the same, with the empty
    /// line that ends it and `linesCount` field lines; valid during the call.
    ///
    /// A body that has no Content-Length is said to be chunked; its bytes come undecorated. Without
    /// `hasBody` there is none, whatever the fields say.
    func responseReceived(
        _ stream: HTTP2Stream, head: Span<UInt8>, linesCount: Int, hasBody: Bool)
    /// Bytes of a body, valid during the call; say with ``HTTP2ClientSession/consumed(_:bytes:)``
    /// when they have been passed on.
    func bodyReceived(_ stream: HTTP2Stream, _ bytes: Span<UInt8>)
    /// The answer is complete; `trailers` are field lines, each with its CR LF, and mostly none.
    ///
    /// Called after ``answerArrived`` without a body too.
    func responseEnded(_ stream: HTTP2Stream, trailers: Span<UInt8>)
    /// All that was written to the stream is framed, and it has not been ended: write more.
    func streamDrained(_ stream: HTTP2Stream)
    /// The last call for a stream: both halves are ended (`noError`), or it failed.
    ///
    /// If it is safe to retry, the origin has not acted on the request (RFC 9113 §8.7). A head
    /// above a limit fails the stream with `enhanceYourCalm`.
    func streamClosed(_ stream: HTTP2Stream, code: HTTP2ErrorCode, isSafeToRetry: Bool)
    /// The origin takes no more requests on this connection; those above its last id fail, and are
    /// safe to retry.
    func goAwayReceived(code: HTTP2ErrorCode)
    /// The origin's SETTINGS came, the first time or again: see
    /// ``HTTP2ClientSession/requestsAvailable``.
    func settingsReceived()
    /// The answer to ``HTTP2ClientSession/ping()``.
    func pingAcknowledged()
}
