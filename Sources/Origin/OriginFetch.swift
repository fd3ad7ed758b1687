package import Ground
package import HTTPRules
package import NIOCore
package import Wire

/// Who is told what an origin answers; called on the client's loop, never before `fetch` returned.
///
/// Exactly one of ``originEnded(delimitedByClose:)`` and ``originFailed(_:)`` is called, as the
/// last call, unless the fetch is cancelled: then nothing more is called. Every method may pause,
/// resume or cancel the fetch.
package protocol OriginFetchDelegate: AnyObject {
    /// A redirect is followed; what is called after this is about the answer to `url`.
    ///
    /// - Parameters:
    ///   - head: the redirect's head.
    ///   - url: where it leads, a canonical key.
    ///   - requestedAt: when the request that it answers was written.
    ///   - answeredAt: when the head was whole.
    func originRedirected(
        _ head: AnswerHead, to url: [UInt8], requestedAt: Instant, answeredAt: Instant)
    /// A question is about to be sent to `origin`, at `address` unless a proxy looked that up.
    func originReached(_ origin: OriginAuthority, at address: IPAddress?)
    /// The final head arrived.
    ///
    /// - Parameters:
    ///   - head: the answer's head.
    ///   - bodyLength: the body's length in bytes; nil if only its end will tell.
    ///   - requestedAt: when the request was written: the `request_time` of RFC 9111 §4.2.3.
    ///   - answeredAt: when the head was whole: the `response_time` of RFC 9111 §4.2.3.
    func originAnswered(
        _ head: AnswerHead, bodyLength: UInt64?, requestedAt: Instant, answeredAt: Instant)
    /// A piece of the body, never empty; it holds on to at most twice its size of memory.
    func originSent(_ body: ByteBuffer)
    /// The answer is whole; `delimitedByClose` if only the connection's orderly end says so.
    func originEnded(delimitedByClose: Bool)
    /// There will be no answer, or no more of it; what came is not the whole.
    func originFailed(_ failure: OriginFailure)
    /// An interim answer (1xx but 101) arrived; the final one follows (RFC 9110 §15.2).
    func originInterim(_ head: AnswerHead)
    /// Fields came behind the body, which is whole; the last call follows. Only for sites.
    func originTrailers(_ trailers: Trailers)
    /// ``OriginFetch/takesMore`` is true now and was not before; never called within a call of
    /// ``OriginFetch/send(body:)``.
    func originTakesMore()
}

extension OriginFetchDelegate {
    /// Has nothing against it.
    package func originReached(_ origin: OriginAuthority, at address: IPAddress?) {}
    /// Drops it.
    package func originInterim(_ head: AnswerHead) {}
    /// Drops them.
    package func originTrailers(_ trailers: Trailers) {}
    /// Has nothing to give.
    package func originTakesMore() {}
}

/// One fetch of an ``OriginClient``, over as many redirects as are allowed; used only on the
/// client's loop.
///
/// Invariants: `delegate` is nil once the fetch is finished. While `next` is set, the body of a
/// redirect is read and dropped.
package final class OriginFetch {
    private let client: OriginClient
    private let totalDeadline: Instant
    private var delegate: (any OriginFetchDelegate)?
    private var chain: RedirectChain
    private var hop: OriginHop?
    /// The question that follows once the redirect's body is over.
    private var next: OriginFetchRequest?
    private var droppedBytes = 0
    private var dropTimer: Scheduled<Void>?

    /// Bytes of a redirect that are still read, because a new connection would cost more, and how
    /// long.
    private static let droppedBytesMax = 16 << 10
    private static let droppingMax = Interval.milliseconds(250)

    /// True between ``pause()`` and ``resume()``.
    package private(set) var isPaused = false

    init(
        to delegate: any OriginFetchDelegate, asking request: OriginFetchRequest,
        client: OriginClient
    ) {
        self.client = client
        self.delegate = delegate
        totalDeadline = client.now() + (request.totalLimit ?? client.settings.totalLimit)
        let followsRedirects = !request.origin.isNamedByOperator
        chain = RedirectChain(
            from: request.key, followedMax: followsRedirects ? client.settings.redirectsMax : 0)
    }

    /// Nothing more is read from the origin until ``resume()``.
    ///
    /// At most one read that is under way is still handed over. If the origin closes the connection
    /// meanwhile, what the kernel holds of the body is taken from it and kept here.
    package func pause() {
        client.loop.assertInEventLoop()
        isPaused = true
        hop?.pause()
    }

    /// Reading goes on, with what was kept first.
    package func resume() {
        client.loop.assertInEventLoop()
        isPaused = false
        hop?.resume()
    }

    /// Others wait for a connection to the origin that is asked.
    package var isContended: Bool {
        client.loop.assertInEventLoop()
        return hop.map { client.exchange.isContended($0.request.origin) } ?? false
    }

    /// The answer's body may come as slowly as the origin likes.
    package func waiveRate() {
        client.loop.assertInEventLoop()
        hop?.waiveRate()
    }

    /// True if the origin takes a piece of the request's body now; false before there is a
    /// connection, and when there is nothing more to be given.
    ///
    /// A piece given while it is false is kept until it can be written, which is right for the few
    /// bytes that came with a client's head, and for no more.
    package var takesMore: Bool {
        client.loop.assertInEventLoop()
        return hop?.takesMore ?? false
    }

    /// True until all of the request's body was given, or nobody wants more of it.
    ///
    /// That is when the origin refused (status 400 or above, RFC 9112 §9.5), when its answer is
    /// whole, or when the fetch is over. What is given later is dropped.
    package var wantsBody: Bool {
        client.loop.assertInEventLoop()
        return hop?.wantsBody ?? false
    }

    /// Gives the next piece of the request's body, without any framing; more than the length that
    /// was announced is a programmer's error.
    ///
    /// Then ``takesMore`` says whether to go on at once or at
    /// ``OriginFetchDelegate/originTakesMore()``. A piece should be of the size of a read: the
    /// limits on the origin's silence see whole pieces only.
    package func send(body piece: ByteBuffer) {
        client.loop.assertInEventLoop()
        hop?.send(body: piece)
    }

    /// The request's body is whole; says nothing new if its length was announced and is reached.
    ///
    /// Trailers are written only after a chunked body.
    package func endBody(trailers: Trailers = Trailers()) {
        client.loop.assertInEventLoop()
        hop?.endBody(trailers)
    }

    /// The delegate is called no more and let go; the connection is closed.
    package func cancel() {
        client.loop.assertInEventLoop()
        finish()
    }

    /// Asks; returns before anything is told.
    func begin(_ request: OriginFetchRequest) {
        let hop = client.makeHop(request, of: self, totalDeadline: totalDeadline)
        self.hop = hop
        if isPaused { hop.pause() }
        client.loop.assumeIsolated().execute { hop.start() }
    }

    @discardableResult
    private func finish() -> (any OriginFetchDelegate)? {
        next = nil
        dropTimer?.cancel()
        let hop = hop
        self.hop = nil
        defer { delegate = nil }
        hop?.cancel()
        return delegate
    }
}

// MARK: - What a hop says

extension OriginFetch {
    func hopAnswered(
        _ head: AnswerHead, bodyLength: UInt64?, requestedAt: Instant, answeredAt: Instant
    ) {
        switch chain.answered(head) {
        case .final:
            delegate?.originAnswered(
                head, bodyLength: bodyLength, requestedAt: requestedAt, answeredAt: answeredAt)
        case .fail(let failure):
            finish()?.originFailed(failure)
        case .follow(let url):
            guard let asked = hop?.request else { return }
            guard let request = asked.redirected(to: url) else {
                finish()?.originFailed(.malformed("no request can be made of its redirect"))
                return
            }
            next = request
            droppedBytes = 0
            delegate?.originRedirected(
                head, to: url, requestedAt: requestedAt, answeredAt: answeredAt)
            guard let bodyLength, bodyLength <= Self.droppedBytesMax else { return goOn() }
            dropTimer = client.schedule(at: client.now() + Self.droppingMax) { [weak self] in
                self?.goOn()
            }
        }
    }

    func hopReached(_ origin: OriginAuthority, at address: IPAddress?) {
        delegate?.originReached(origin, at: address)
    }

    func hopInterim(_ head: AnswerHead) {
        delegate?.originInterim(head)
    }

    func hopTrailers(_ trailers: Trailers) {
        if next == nil { delegate?.originTrailers(trailers) }
    }

    func hopTakesMore() {
        delegate?.originTakesMore()
    }

    func hopSent(_ body: ByteBuffer) {
        guard next != nil else { return delegate?.originSent(body) ?? () }
        droppedBytes += body.readableBytes
        if droppedBytes > Self.droppedBytesMax { goOn() }
    }

    func hopEnded(delimitedByClose: Bool) {
        guard next == nil else { return goOn() }
        hop = nil
        finish()?.originEnded(delimitedByClose: delimitedByClose)
    }

    func hopFailed(_ failure: OriginFailure) {
        // The redirect itself was understood; only what nobody wanted of it is missing.
        guard next == nil || failure == .shutDown else { return goOn() }
        let origin = hop?.request.origin
        hop = nil
        guard chain.isRedirected, next == nil, let origin else {
            finish()?.originFailed(failure)
            return
        }
        finish()?.originFailed(.redirected(to: origin, failure))
    }

    private func goOn() {
        guard let request = next, delegate != nil else { return }
        next = nil
        dropTimer?.cancel()
        let before = hop
        hop = nil
        before?.cancel()
        begin(request)
    }
}
