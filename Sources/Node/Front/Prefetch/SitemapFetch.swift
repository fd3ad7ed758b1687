import Admin
import Ground
import HTTPRules
import NIOCore
import Origin
import Wire

typealias PrefetchOutcome = PrefetchJob.ItemOutcome

/// Brings a sitemap from an origin that is no site's; it is not cached.
///
/// Confined to the loop of its hall; held by the fetch.
final class SitemapFetch: OriginFetchDelegate {
    private var bytes: [UInt8] = []
    private var status: UInt16?
    private var originFetch: OriginFetch?
    private var completion: ((Result<[UInt8], Failure>) -> Void)?

    /// Why there is none.
    struct Failure: Error {
        let outcome: PrefetchOutcome
    }

    /// Asks for `key`, which is canonical.
    func begin(
        _ key: [UInt8], on context: EventLoopContext,
        _ told: @escaping (Result<[UInt8], Failure>) -> Void
    ) {
        self.completion = told
        let cause = RequestCorrelation(context.requestIDs.id(context.requestIDs.next()), nil)
        let request = context.settings.images.policy(ofKey: key.span).request(
            for: key, [], [], cause: cause)
        guard var request else {
            return end(.failure(Failure(outcome: .failed(reason: "no request can be made"))))
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
        let why = "it answered \(status ?? 0)"
        switch status {
        case 200: end(.success(bytes))
        case 503: end(.failure(Failure(outcome: .deferred(reason: why, retryAfter: nil))))
        default: end(.failure(Failure(outcome: .failed(reason: why))))
        }
    }

    func originFetchFailed(_ failure: OriginFailure) {
        end(.failure(Failure(outcome: PrefetchOutcome(failure))))
    }

    private func end(_ result: Result<[UInt8], Failure>) {
        originFetch = nil
        completion.take()?(result)
    }
}

extension Sitemap {
    static let tooLarge = "it has more than \(bytesMax >> 20) MiB"
}

extension PrefetchOutcome {
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

    /// What a problem is called if a limit of the node's own was reached.
    static let nodeProblemNames: Set<String> = ["overloaded", "shutting-down"]

    /// What was read of a sitemap with these bytes.
    init(sitemap bytes: [UInt8]) {
        do throws(Sitemap.FormatError) {
            self = .sitemap(try Sitemap(bytes, imagesMax: PrefetchRequest.urlsMax))
        } catch {
            switch error {
            case .notSitemap:
                self = .failed(
                    reason: "it is no sitemap: neither urlset nor sitemapindex, nor URLs")
            case .truncated: self = .failed(reason: "its XML ends too early")
            case .compressed: self = .failed(reason: "it is compressed; name one that is not")
            }
        }
    }
}
