import Admin
import Ground
import HTTPRules
import NIOCore
import Origin
import Wire

typealias PrefetchEnding = Prefetch.Ending

/// Brings a sitemap from an origin that is no site's; it is not cached.
///
/// Confined to the loop of its hall; held by the fetch.
final class SitemapFetch: OriginFetchDelegate {
    private var bytes: [UInt8] = []
    private var status: UInt16?
    private var fetch: OriginFetch?
    private var told: ((Result<[UInt8], Failure>) -> Void)?

    /// Why there is none.
    struct Failure: Error {
        let ending: PrefetchEnding
    }

    /// Asks for `key`, which is canonical.
    func begin(
        _ key: [UInt8], on hall: Hall, _ told: @escaping (Result<[UInt8], Failure>) -> Void
    ) {
        self.told = told
        let cause = RequestCause(hall.requestNames.id(hall.requestNames.next()), nil)
        let request = hall.settings.images.plan(ofKey: key.span).request(
            for: key, [], [], cause: cause)
        guard var request else {
            return end(.failure(Failure(ending: .failed(why: "no request can be made"))))
        }
        request.bodyBytesMax = UInt64(Sitemap.bytesMax)
        fetch = hall.origin.fetch(request, to: self)
    }

    func originRedirected(
        _ head: AnswerHead, to url: [UInt8], requestedAt: Instant, answeredAt: Instant
    ) {}

    func originAnswered(
        _ head: AnswerHead, bodyLength: UInt64?, requestedAt: Instant, answeredAt: Instant
    ) {
        status = head.status
    }

    func originSent(_ body: ByteBuffer) {
        guard bytes.count + body.readableBytes <= Sitemap.bytesMax else {
            fetch?.cancel()
            return end(.failure(Failure(ending: .failed(why: Sitemap.tooLarge))))
        }
        bytes += body.readableBytesView
    }

    func originEnded(delimitedByClose: Bool) {
        let why = "it answered \(status ?? 0)"
        switch status {
        case 200: end(.success(bytes))
        case 503: end(.failure(Failure(ending: .busy(why: why, retryAfter: nil))))
        default: end(.failure(Failure(ending: .failed(why: why))))
        }
    }

    func originFailed(_ failure: OriginFailure) {
        end(.failure(Failure(ending: PrefetchEnding(failure))))
    }

    private func end(_ result: Result<[UInt8], Failure>) {
        fetch = nil
        told.take()?(result)
    }
}

extension Sitemap {
    static let tooLarge = "it has more than \(bytesMax >> 20) MiB"
}

extension PrefetchEnding {
    init(_ failure: OriginFailure) {
        let (why, name) = ("\(failure)", failure.problem.name)
        if failure.status == 503 {
            self = .busy(
                why: why, retryAfter: failure.retryAfter,
                isOfHost: !Self.namesOfNode.contains(name))
        } else if OriginFailure.originWideNames.contains(name) {
            self = .busy(why: why, retryAfter: nil)
        } else {
            self = .failed(why: why, hasAnswered: false)
        }
    }

    /// What a problem is called if a limit of the node's own was reached.
    static let namesOfNode: Set<String> = ["overloaded", "shutting-down"]

    /// What was read of a sitemap with these bytes.
    init(sitemap bytes: [UInt8]) {
        do throws(Sitemap.Fault) {
            self = .sitemap(try Sitemap(bytes, imagesMax: PrefetchRequest.urlsMax))
        } catch {
            switch error {
            case .noSitemap:
                self = .failed(why: "it is no sitemap: neither urlset nor sitemapindex, nor URLs")
            case .cutOff: self = .failed(why: "its XML ends too early")
            case .compressed: self = .failed(why: "it is compressed; name one that is not")
            }
        }
    }
}
