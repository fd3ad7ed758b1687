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
    ///   - respondedAt: when the head was whole.
    func redirectReceived(
        _ head: ResponseHead, to url: [UInt8], requestedAt: Instant, respondedAt: Instant)
    /// A question is about to be sent to `origin`, at `address` unless a proxy looked that up.
    func requestStarting(_ origin: OriginAuthority, at address: IPAddress?)
    /// The final head arrived.
    ///
    /// - Parameters:
    ///   - head: the answer's head.
    ///   - bodyLength: the body's length in bytes; nil if only its end will tell.
    ///   - requestedAt: when the request was written: the `request_time` of RFC 9111 §4.2.3.
    ///   - respondedAt: when the head was whole: the `response_time` of RFC 9111 §4.2.3.
    func originResponseReceived(
        _ head: ResponseHead, bodyLength: UInt64?, requestedAt: Instant, respondedAt: Instant)
    /// A piece of the body, never empty; it holds on to at most twice its size of memory.
    func originBodyReceived(_ body: ByteBuffer)
    /// The answer is whole; `delimitedByClose` if only the connection's orderly end says so.
    func originResponseEnded(delimitedByClose: Bool)
    /// There will be no answer, or no more of it; what came is not the whole.
    func originFetchFailed(_ failure: OriginFailure)
    /// An interim answer (1xx but 101) arrived; the final one follows (RFC 9110 §15.2).
    func originInterimResponseReceived(_ head: ResponseHead)
    /// Fields came behind the body, which is whole; the last call follows. Only for sites.
    func originTrailersReceived(_ trailers: Trailers)
    /// ``OriginFetch/takesMore`` is true now and was not before; never called within a call of
    /// ``OriginFetch/send(body:)``.
    func originBecameWritable()
}

extension OriginFetchDelegate {
    /// Has nothing against it.
    package func requestStarting(_ origin: OriginAuthority, at address: IPAddress?) {}
    /// Drops it.
    package func originInterimResponseReceived(_ head: ResponseHead) {}
    /// Drops them.
    package func originTrailersReceived(_ trailers: Trailers) {}
    /// Has nothing to give.
    package func originBecameWritable() {}
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
    private var transaction: OriginTransaction?
    /// The question that follows once the redirect's body is over.
    private var redirectRequest: OriginFetchRequest?
    private var discardedBytes = 0
    private var discardTimer: Scheduled<Void>?

    /// Bytes of a redirect that are still read, because a new connection would cost more, and how
    /// long.
    private static let discardedBytesMax = 16 << 10
    private static let discardLimit = Interval.milliseconds(250)

    /// True between ``pause()`` and ``resume()``.
    package private(set) var isPaused = false

    init(
        to delegate: any OriginFetchDelegate, request: OriginFetchRequest,
        client: OriginClient
    ) {
        self.client = client
        self.delegate = delegate
        totalDeadline = client.now() + (request.totalLimit ?? client.settings.totalLimit)
        let followsRedirects = !request.origin.isOperatorConfigured
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
        transaction?.pause()
    }

    /// Reading goes on, with what was kept first.
    package func resume() {
        client.loop.assertInEventLoop()
        isPaused = false
        transaction?.resume()
    }

    /// Others wait for a connection to the origin that is asked.
    package var isContended: Bool {
        client.loop.assertInEventLoop()
        return transaction.map { client.coordinator.isContended($0.request.origin) } ?? false
    }

    /// The answer's body may come as slowly as the origin likes.
    package func waiveMinimumRate() {
        client.loop.assertInEventLoop()
        transaction?.waiveMinimumRate()
    }

    /// True if the origin takes a piece of the request's body now; false before there is a
    /// connection, and when there is nothing more to be given.
    ///
    /// A piece given while it is false is kept until it can be written, which is right for the few
    /// bytes that came with a client's head, and for no more.
    package var isWritable: Bool {
        client.loop.assertInEventLoop()
        return transaction?.isWritable ?? false
    }

    /// True until all of the request's body was given, or nobody wants more of it.
    ///
    /// That is when the origin refused (status 400 or above, RFC 9112 §9.5), when its answer is
    /// whole, or when the fetch is over. What is given later is dropped.
    package var acceptsBody: Bool {
        client.loop.assertInEventLoop()
        return transaction?.acceptsBody ?? false
    }

    /// Gives the next piece of the request's body, without any framing; more than the length that
    /// was announced is a programmer's error.
    ///
    /// Then ``takesMore`` says whether to go on at once or at
    /// ``OriginFetchDelegate/originTakesMore()``. A piece should be of the size of a read: the
    /// limits on the origin's silence see whole pieces only.
    package func send(body piece: ByteBuffer) {
        client.loop.assertInEventLoop()
        transaction?.send(body: piece)
    }

    /// The request's body is whole; says nothing new if its length was announced and is reached.
    ///
    /// Trailers are written only after a chunked body.
    package func endBody(trailers: Trailers = Trailers()) {
        client.loop.assertInEventLoop()
        transaction?.endBody(trailers)
    }

    /// The delegate is called no more and let go; the connection is closed.
    package func cancel() {
        client.loop.assertInEventLoop()
        finish()
    }

    /// Asks; returns before anything is told.
    func begin(_ request: OriginFetchRequest) {
        let hop = client.makeTransaction(request, of: self, totalDeadline: totalDeadline)
        self.transaction = hop
        if isPaused { hop.pause() }
        client.loop.assumeIsolated().execute { hop.start() }
    }

    @discardableResult
    private func finish() -> (any OriginFetchDelegate)? {
        redirectRequest = nil
        discardTimer?.cancel()
        let hop = transaction
        self.transaction = nil
        defer { delegate = nil }
        hop?.cancel()
        return delegate
    }
}

// MARK: - What a hop says

extension OriginFetch {
    func responseHeadReceived(
        _ head: ResponseHead, bodyLength: UInt64?, requestedAt: Instant, respondedAt: Instant
    ) {
        switch chain.responseReceived(head) {
        case .final:
            delegate?.originResponseReceived(
                head, bodyLength: bodyLength, requestedAt: requestedAt, respondedAt: respondedAt)
        case .fail(let failure):
            finish()?.originFetchFailed(failure)
        case .follow(let url):
            guard let asked = transaction?.request else { return }
            guard let request = asked.redirected(to: url) else {
                finish()?.originFetchFailed(.malformed("no request can be made of its redirect"))
                return
            }
            redirectRequest = request
            discardedBytes = 0
            delegate?.redirectReceived(
                head, to: url, requestedAt: requestedAt, respondedAt: respondedAt)
            guard let bodyLength, bodyLength <= Self.discardedBytesMax else {
                return followRedirect()
            }
            discardTimer = client.schedule(at: client.now() + Self.discardLimit) { [weak self] in
                self?.followRedirect()
            }
        }
    }

    func requestStarting(_ origin: OriginAuthority, at address: IPAddress?) {
        delegate?.requestStarting(origin, at: address)
    }

    func interimResponseReceived(_ head: ResponseHead) {
        delegate?.originInterimResponseReceived(head)
    }

    func trailersReceived(_ trailers: Trailers) {
        if redirectRequest == nil { delegate?.originTrailersReceived(trailers) }
    }

    func becameWritable() {
        delegate?.originBecameWritable()
    }

    func bodyReceived(_ body: ByteBuffer) {
        guard redirectRequest != nil else { return delegate?.originBodyReceived(body) ?? () }
        discardedBytes += body.readableBytes
        if discardedBytes > Self.discardedBytesMax { followRedirect() }
    }

    func transactionEnded(delimitedByClose: Bool) {
        guard redirectRequest == nil else { return followRedirect() }
        transaction = nil
        finish()?.originResponseEnded(delimitedByClose: delimitedByClose)
    }

    func transactionFailed(_ failure: OriginFailure) {
        // The redirect itself was understood; only what nobody wanted of it is missing.
        guard redirectRequest == nil || failure == .shuttingDown else { return followRedirect() }
        let origin = transaction?.request.origin
        transaction = nil
        guard chain.isRedirected, redirectRequest == nil, let origin else {
            finish()?.originFetchFailed(failure)
            return
        }
        finish()?.originFetchFailed(.redirected(to: origin, failure))
    }

    private func followRedirect() {
        guard let request = redirectRequest, delegate != nil else { return }
        redirectRequest = nil
        discardTimer?.cancel()
        let before = transaction
        transaction = nil
        before?.cancel()
        begin(request)
    }
}

/// The redirects of one fetch: where the next leads, and whether it is followed.
package struct RedirectChain: Hashable, Sendable {
    /// What becomes of an answer.
    package enum Step: Hashable, Sendable {
        /// It is no redirect that is followed.
        case final
        /// Ask for this URL, a canonical key.
        case follow([UInt8])
        case fail(OriginFailure)
    }

    /// The canonical keys that were asked for, in order; never empty.
    package private(set) var urls: [[UInt8]]
    private let followedMax: Int

    /// A chain that begins at a canonical key; of 0 redirects at most, none is followed.
    package init(from url: [UInt8], followedMax: Int) {
        urls = [url]
        self.followedMax = followedMax
    }

    /// The URL asked for now.
    package var url: [UInt8] { urls[urls.count - 1] }
    /// True once a redirect was followed.
    package var isRedirected: Bool { urls.count > 1 }

    /// An answer came to the URL asked for now.
    package mutating func responseReceived(_ head: ResponseHead) -> Step {
        guard followedMax > 0, Self.redirectStatuses.contains(head.status),
            let location = head.first(.location)
        else { return .final }
        guard urls.count <= followedMax else { return .fail(.tooManyRedirects(max: followedMax)) }
        var next: [UInt8] = []
        switch RedirectTarget.resolve(
            Array(head.bytes[location.range]), against: url, into: &next)
        {
        case .refused(let refusal): return .fail(.redirectRefused(refusal))
        case .normalised: break
        }
        guard !urls.contains(next) else { return .fail(.redirectLoop) }
        urls.append(next)
        return .follow(next)
    }

    /// Those by which a GET is repeated elsewhere (RFC 9110 §15.4); 300 and 305 are not.
    private static let redirectStatuses: Set<UInt16> = [301, 302, 303, 307, 308]
}
