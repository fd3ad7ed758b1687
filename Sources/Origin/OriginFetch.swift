package import Ground
package import HTTPRules
package import NIOCore

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

    init(to delegate: any OriginFetchDelegate, from url: [UInt8], client: OriginClient) {
        self.client = client
        self.delegate = delegate
        totalDeadline = client.now() + client.settings.totalLimit
        chain = RedirectChain(from: url, followedMax: client.settings.redirectsMax)
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
            let request: OriginFetchRequest
            do {
                guard let asked = hop?.request else { return }
                request = try asked.redirected(to: url)
            } catch {
                preconditionFailure("no request can be made of a canonical key: \(error)")
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
