import Admin
import Ground
import HTTPRules
import NIOCore
import Origin
import Wire

/// Outcome of one item of a prefetch job.
typealias PrefetchOutcome = PrefetchJob.ItemOutcome

/// Fetch of a sitemap from an origin that belongs to no site; the response is not cached.
///
/// Confined to its event loop; retained by the origin fetch.
final class SitemapFetch: OriginFetchDelegate {
    /// Bytes of the sitemap received so far.
    private var bytes: [UInt8] = []
    /// Status of the origin's response; `nil` before its head.
    private var status: UInt16?
    private var originFetch: OriginFetch?
    /// The completion closure; `nil` before the start and once it was called.
    private var completion: ((Result<[UInt8], Failure>) -> Void)?

    /// The reason why there is no sitemap.
    struct Failure: Error {
        let outcome: PrefetchOutcome
    }

    /// Starts the fetch of the canonical URL `key` and calls the completion closure once, with the
    /// bytes or the failure.
    ///
    /// The fetch runs on `context`, which also calls the closure.
    func begin(
        _ key: [UInt8], on context: EventLoopContext,
        _ completion: @escaping (Result<[UInt8], Failure>) -> Void
    ) {
        self.completion = completion
        let cause = RequestCorrelation(context.requestIDs.id(context.requestIDs.next()), nil)
        let request = context.settings.images.policy(ofKey: key.span).request(
            for: key, [], [], cause: cause)
        guard var request else {
            return end(.failure(Failure(outcome: .failed(reason: "the URL cannot be requested"))))
        }
        request.bodyBytesMax = UInt64(Sitemap.bytesMax)
        originFetch = context.origin.fetch(request, to: self)
    }

    func redirectReceived(
        _ head: ResponseHead, to url: [UInt8], requestedAt: Instant, respondedAt: Instant
    ) {}

    func originResponseReceived(
        _ head: ResponseHead, bodyLength: UInt64?, requestedAt: Instant, respondedAt: Instant
    ) {
        status = head.status
    }

    func originBodyReceived(_ body: ByteBuffer) {
        guard bytes.count + body.readableBytes <= Sitemap.bytesMax else {
            originFetch?.cancel()
            return end(.failure(Failure(outcome: .failed(reason: Sitemap.tooLarge))))
        }
        bytes += body.readableBytesView
    }

    func originResponseEnded(delimitedByClose: Bool) {
        let why = "it responded with \(status ?? 0)"
        switch status {
        case 200: end(.success(bytes))
        case 503: end(.failure(Failure(outcome: .deferred(reason: why, retryAfter: nil))))
        default: end(.failure(Failure(outcome: .failed(reason: why))))
        }
    }

    func originFetchFailed(_ failure: OriginFailure) {
        end(.failure(Failure(outcome: PrefetchOutcome(failure))))
    }

    /// Forgets the origin fetch and reports the result, once.
    private func end(_ result: Result<[UInt8], Failure>) {
        originFetch = nil
        completion.take()?(result)
    }
}

extension Sitemap {
    /// Failure text for a sitemap above the size limit.
    static let tooLarge = "it is larger than \(bytesMax >> 20) MiB"
}

extension PrefetchOutcome {
    /// Creates the outcome of a failed origin fetch: deferred if a retry of this or any other URL
    /// of the origin may succeed later.
    init(_ failure: OriginFailure) {
        let (why, name) = ("\(failure)", failure.problem.name)
        if failure.status == 503 {
            self = .deferred(
                reason: why, retryAfter: failure.retryAfter,
                isHostFault: !Self.nodeProblemNames.contains(name))
        } else if OriginFailure.originWideNames.contains(name) {
            self = .deferred(reason: why, retryAfter: nil)
        } else {
            self = .failed(reason: why, hostResponded: false)
        }
    }

    /// Names of the problems caused by limits of this node.
    static let nodeProblemNames: Set<String> = ["overloaded", "shutting-down"]

    /// Creates the outcome of parsing `bytes` as a sitemap.
    init(sitemap bytes: [UInt8]) {
        do throws(Sitemap.FormatError) {
            self = .sitemap(try Sitemap(bytes, imagesMax: PrefetchRequest.urlsMax))
        } catch {
            switch error {
            case .notSitemap:
                self = .failed(
                    reason: "it is not a sitemap: it has no urlset, sitemapindex or list of URLs")
            case .truncated: self = .failed(reason: "its XML is truncated")
            case .compressed: self = .failed(reason: "it is compressed; give an uncompressed one")
            }
        }
    }
}
