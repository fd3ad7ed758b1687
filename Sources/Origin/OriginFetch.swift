package import Ground
package import HTTPRules
package import NIOCore
package import Wire

/// The receiver of a fetch's response; called on the client's loop, never before
/// ``OriginClient/fetch(_:to:)`` has returned.
///
/// Exactly one of ``originResponseEnded(delimitedByClose:)`` and ``originFetchFailed(_:)`` is
/// called, as the last call. After a cancellation no method is called. Every method may pause,
/// resume or cancel the fetch.
package protocol OriginFetchDelegate: AnyObject {
    /// Reports a redirect that is followed; later calls concern the response to `url`.
    ///
    /// - Parameters:
    ///   - head: the head of the redirect.
    ///   - url: the target, a canonical key.
    ///   - requestedAt: when the redirected request was written.
    ///   - respondedAt: when the head was complete.
    func redirectReceived(
        _ head: ResponseHead, to url: [UInt8], requestedAt: Instant, respondedAt: Instant)
    /// Reports that a request is about to be sent to `origin`, at `address` unless a proxy resolved
    /// the name.
    func requestStarting(_ origin: OriginAuthority, at address: IPAddress?)
    /// Reports the final response head.
    ///
    /// - Parameters:
    ///   - head: the response head.
    ///   - bodyLength: the length of the body in bytes; `nil` if it is not known in advance.
    ///   - requestedAt: when the request was written: the `request_time` of RFC 9111 §4.2.3.
    ///   - respondedAt: when the head was complete: the `response_time` of RFC 9111 §4.2.3.
    func originResponseReceived(
        _ head: ResponseHead, bodyLength: UInt64?, requestedAt: Instant, respondedAt: Instant)
    /// Reports a piece of the body, which is never empty and retains at most twice its size in
    /// memory.
    func originBodyReceived(_ body: ByteBuffer)
    /// Reports that the response is complete; `delimitedByClose` if only the orderly close of the
    /// connection shows it.
    func originResponseEnded(delimitedByClose: Bool)
    /// Reports that there is no response, or that it is incomplete.
    func originFetchFailed(_ failure: OriginFailure)
    /// Reports an interim response (1xx except 101); the final one follows (RFC 9110 §15.2).
    func originInterimResponseReceived(_ head: ResponseHead)
    /// Reports the trailers after the complete body; the last call follows. Only for site requests.
    func originTrailersReceived(_ trailers: Trailers)
    /// Reports that ``OriginFetch/isWritable`` has become true; never called within
    /// ``OriginFetch/send(body:)``.
    func originBecameWritable()
}

extension OriginFetchDelegate {
    /// Ignores the request.
    package func requestStarting(_ origin: OriginAuthority, at address: IPAddress?) {}
    /// Ignores the interim response.
    package func originInterimResponseReceived(_ head: ResponseHead) {}
    /// Ignores the trailers.
    package func originTrailersReceived(_ trailers: Trailers) {}
    /// Ignores the notification, for a delegate that sends no body.
    package func originBecameWritable() {}
}

/// One fetch of an ``OriginClient``, including the redirects it follows; confined to the client's
/// loop.
///
/// Invariants: `delegate` is `nil` once the fetch is finished. While `redirectRequest` is set, the
/// body of a redirect is read and discarded.
package final class OriginFetch {
    private let client: OriginClient
    private let totalDeadline: Instant
    private var delegate: (any OriginFetchDelegate)?
    private var chain: RedirectChain
    private var transaction: OriginTransaction?
    /// The request to send once the redirect's body has ended.
    private var redirectRequest: OriginFetchRequest?
    /// Bytes of the redirect's body that were read and discarded.
    private var discardedBytes = 0
    private var discardTimer: Scheduled<Void>?

    /// Maximum size in bytes of a redirect's body that is read to keep its connection, which is
    /// cheaper than a new one.
    private static let discardedBytesMax = 16 << 10
    /// Maximum time for which the body of a redirect is read.
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

    /// Stops the delivery of the response until ``resume()``.
    ///
    /// What still arrives is held here: over HTTP/1.1, the read in progress, and what is in the
    /// kernel's buffer if the origin closes the connection; over HTTP/2, up to the window of the
    /// stream.
    package func pause() {
        client.loop.assertInEventLoop()
        isPaused = true
        transaction?.pause()
    }

    /// Resumes the delivery of the response, starting with held data.
    package func resume() {
        client.loop.assertInEventLoop()
        isPaused = false
        transaction?.resume()
    }

    /// True if requests of any loop wait for a connection to the current origin; false once the
    /// fetch is over.
    package var isContended: Bool {
        client.loop.assertInEventLoop()
        return transaction.map { client.coordinator.isContended($0.request.origin) } ?? false
    }

    /// Exempts the body of the current response from the minimum rate; the response to a followed
    /// redirect is not exempt.
    package func waiveMinimumRate() {
        client.loop.assertInEventLoop()
        transaction?.waiveMinimumRate()
    }

    /// True if the connection accepts a piece of the request body now; false before there is one,
    /// and when the body has ended.
    ///
    /// A piece sent while it is false is held until it can be written. That suits the few bytes
    /// that arrived with a client's head, and no more.
    package var isWritable: Bool {
        client.loop.assertInEventLoop()
        return transaction?.isWritable ?? false
    }

    /// True until the whole request body was supplied, or the rest is not needed.
    ///
    /// The rest is not needed when the origin refused the request (status 400 or above, RFC 9112
    /// §9.5), when its response is complete, or when the fetch is over. Pieces sent later are
    /// dropped.
    package var acceptsBody: Bool {
        client.loop.assertInEventLoop()
        return transaction?.acceptsBody ?? false
    }

    /// Sends the next piece of the request body, without framing; drops it unless ``acceptsBody``.
    ///
    /// Bytes beyond the announced length are dropped. Afterwards, ``isWritable`` shows whether to
    /// continue at once or at ``OriginFetchDelegate/originBecameWritable()``. A piece should have
    /// the size of one read: the limits on the origin's silence see whole pieces only.
    package func send(body piece: ByteBuffer) {
        client.loop.assertInEventLoop()
        transaction?.send(body: piece)
    }

    /// Ends a request body without an announced length; after a protocol switch, the fetch then
    /// ends once everything is written.
    ///
    /// A body with a length ends by itself: it is not ended here, even if bytes are missing.
    /// Trailers are written only after a chunked body.
    package func endBody(trailers: Trailers = Trailers()) {
        client.loop.assertInEventLoop()
        transaction?.endBody(trailers)
    }

    /// Cancels the fetch: the delegate is released without another call, and the connection is
    /// closed.
    package func cancel() {
        client.loop.assertInEventLoop()
        finish()
    }

    /// Starts the transaction of `request`, the first one or that of a redirect; no callback
    /// happens before this method returns.
    func begin(_ request: OriginFetchRequest) {
        let hop = client.makeTransaction(request, of: self, totalDeadline: totalDeadline)
        self.transaction = hop
        if isPaused { hop.pause() }
        client.loop.assumeIsolated().execute { hop.start() }
    }

    /// Cancels the transaction and releases the delegate; returns it for its last call, or `nil` if
    /// the fetch is over.
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

// MARK: - Events of the transaction

extension OriginFetch {
    /// Delivers the final head, or reports a redirect and reads its body, if that is short, before
    /// following it.
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
            guard let original = transaction?.request else { return }
            guard let request = original.redirected(to: url) else {
                finish()?.originFetchFailed(.malformed("its redirect has no valid target"))
                return
            }
            redirectRequest = request
            discardedBytes = 0
            delegate?.redirectReceived(
                head, to: url, requestedAt: requestedAt, respondedAt: respondedAt)
            guard let bodyLength, bodyLength <= Self.discardedBytesMax else {
                return followRedirect()
            }
            let now = client.now()
            discardTimer = client.loop.schedule(at: now + Self.discardLimit, now: now) {
                [weak self] in
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

    /// Delivers trailers, except those of a redirect that is followed.
    func trailersReceived(_ trailers: Trailers) {
        if redirectRequest == nil { delegate?.originTrailersReceived(trailers) }
    }

    func becameWritable() {
        delegate?.originBecameWritable()
    }

    /// Delivers a piece of the body; discards that of a redirect, which is followed at once if the
    /// body is too long.
    func bodyReceived(_ body: ByteBuffer) {
        guard redirectRequest != nil else { return delegate?.originBodyReceived(body) ?? () }
        discardedBytes += body.readableBytes
        if discardedBytes > Self.discardedBytesMax { followRedirect() }
    }

    /// Ends the fetch, or follows the redirect whose body has ended.
    func transactionEnded(delimitedByClose: Bool) {
        guard redirectRequest == nil else { return followRedirect() }
        transaction = nil
        finish()?.originResponseEnded(delimitedByClose: delimitedByClose)
    }

    /// Fails the fetch; if only the body of a redirect is missing, the redirect is followed
    /// instead, except at a shutdown.
    func transactionFailed(_ failure: OriginFailure) {
        // The redirect itself was understood; only the discarded part of its body is missing.
        guard redirectRequest == nil || failure == .shuttingDown else { return followRedirect() }
        let origin = transaction?.request.origin
        transaction = nil
        guard chain.isRedirected, redirectRequest == nil, let origin else {
            finish()?.originFetchFailed(failure)
            return
        }
        finish()?.originFetchFailed(.redirected(to: origin, failure))
    }

    /// Cancels the transaction of the pending redirect and sends the next request; without effect
    /// if none is pending.
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

/// The redirects of one fetch: resolves the next target and decides whether to follow it.
package struct RedirectChain: Hashable, Sendable {
    /// The decision about a response.
    package enum Step: Hashable, Sendable {
        /// The response is not a redirect to follow.
        case final
        /// Request this URL, a canonical key.
        case follow([UInt8])
        /// Fail the fetch.
        case fail(OriginFailure)
    }

    /// The canonical keys requested so far, in order; never empty.
    package private(set) var urls: [[UInt8]]
    private let followedMax: Int

    /// Creates a chain that starts at a canonical key; with a maximum of 0, no redirect is
    /// followed.
    package init(from url: [UInt8], followedMax: Int) {
        urls = [url]
        self.followedMax = followedMax
    }

    /// The URL of the current request, a canonical key.
    package var url: [UInt8] { urls[urls.count - 1] }
    /// True once a redirect was followed.
    package var isRedirected: Bool { urls.count > 1 }

    /// Decides about the response to the current request, and appends the target if it is followed.
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

    /// The statuses that repeat a GET elsewhere (RFC 9110 §15.4); 300 and 305 do not.
    private static let redirectStatuses: Set<UInt16> = [301, 302, 303, 307, 308]
}
