import Admin
import Ground
import HTTPRules
import Logging
import NIOCore
import NIOPosix
import Platform
import Synchronization

/// Executor of prefetch jobs, which uses all loops in turn.
///
/// Thread-safe.
package final class Prefetcher: Sendable {
    /// The mutable state.
    private struct State {
        /// The jobs.
        var list = PrefetchJobTable()
        /// Loop of the last item.
        var nextLoop = 0
    }

    private let state = Mutex(State())
    /// True while jobs may have items to run; otherwise ``ticked(_:)`` does nothing.
    private let isBusy = Atomic<Bool>(false)

    // MARK: Admin operations

    /// Returns the documents of all known jobs.
    func documents() -> [PrefetchDocument] {
        state.withLock { $0.list.documents(at: SystemClock.now()) }
    }

    /// Returns the document of a job; `nil` if there is none of this name.
    func document(_ name: String) -> PrefetchDocument? {
        state.withLock { $0.list.document(name, at: SystemClock.now()) }
    }

    /// Starts a job for `request`, and returns its document; throws a `StartError` if too many jobs
    /// are running.
    func begin(
        _ request: PrefetchRequest, on node: NodeCore
    ) throws(PrefetchJobTable.StartError) -> PrefetchDocument {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        let name = String(repeating: "0", count: 16 - digits.count) + digits
        let begun = state.withLock { state in
            Result<PrefetchDocument, PrefetchJobTable.StartError> {
                () throws(PrefetchJobTable.StartError) in
                try state.list.start(request, name: name, at: SystemClock.now())
            }
        }
        let document = try begun.get()
        node.logger.notice(
            "prefetch started",
            metadata: ["prefetch": "\(name)", "urls": "\(document.urlsTotal)"])
        isBusy.store(true, ordering: .relaxed)
        runDueItems(node)
        return document
    }

    /// Cancels a job, unless it has finished, and returns its document; `nil` if no job has this
    /// name.
    func cancel(_ name: String, on node: NodeCore) -> PrefetchDocument? {
        if let cancelled = state.withLock({ $0.list.cancel(name, at: SystemClock.now()) }) {
            Self.log(cancelled, to: node.logger)
        }
        return document(name)
    }

    /// Cancels all jobs, because the node stops.
    package func cancelAll(on node: NodeCore) {
        let cancelled = state.withLock { $0.list.cancelAll(at: SystemClock.now()) }
        for document in cancelled { Self.log(document, to: node.logger) }
    }

    /// Runs items that are due; called every ``EventLoopContext/tick`` of one loop.
    func ticked(_ node: NodeCore) {
        guard isBusy.load(ordering: .relaxed) else { return }
        runDueItems(node)
    }

    // MARK: Steps

    /// Runs all items that are due, on the loops in turn; does nothing on a node without contexts.
    private func runDueItems(_ node: NodeCore) {
        let contexts = node.contexts
        guard !contexts.isEmpty else { return }
        let steps = state.withLock { state in
            let steps = state.list.dequeue(at: SystemClock.now())
            if state.list.areAllFinished { isBusy.store(false, ordering: .relaxed) }
            return steps.map { step in
                state.nextLoop = (state.nextLoop + 1) % contexts.count
                return (step, state.nextLoop)
            }
        }
        for (step, loop) in steps {
            let context = contexts[loop]
            context.loop.execute { self.run(step, on: context) }
        }
    }

    /// Runs an item; on the loop.
    private func run(_ step: PrefetchJobTable.ScheduledItem, on context: EventLoopContext) {
        let ended = { (ending: PrefetchOutcome) in self.itemFinished(step, ending, on: context.node)
        }
        switch step.task {
        case .url(let url):
            send(url, accept: step.accept, bodyBytesMax: 2_048, on: context) {
                ended($0.prefetchOutcome)
            }
        case .sitemap(let url): readSitemap(url, on: context, ended)
        }
    }

    /// Fetches a sitemap: by an internal request if it belongs to a site, otherwise from its
    /// origin.
    private func readSitemap(
        _ url: String, on context: EventLoopContext, _ ended: @escaping (PrefetchOutcome) -> Void
    ) {
        let question = InternalRequestHead(url, accept: "*/*", sites: context.settings.sites)
        guard question?.isForSite != true else {
            return send(url, accept: "*/*", bodyBytesMax: Sitemap.bytesMax, on: context) { report in
                guard report.status == 200 else { return ended(report.prefetchOutcome) }
                guard !report.isBodyTruncated else {
                    return ended(.failed(reason: Sitemap.tooLarge))
                }
                self.parse(report.body, on: context, ended)
            }
        }
        var key: [UInt8] = []
        let bytes = Array(url.utf8)
        let made = CacheKey.normalise(
            url: bytes.span, at: 0..<bytes.count, into: &key,
            bytesMax: context.settings.urlBytesMax)
        if case .refused(let refusal) = made {
            return ended(.failed(reason: refusal.message))
        }
        SitemapFetch().begin(key, on: context) { result in
            switch result {
            case .success(let bytes): self.parse(bytes, on: context, ended)
            case .failure(let failure): ended(failure.outcome)
            }
        }
    }

    /// Parses a sitemap on another thread; calls `ended` on the loop with the URLs or the failure.
    private func parse(
        _ bytes: [UInt8], on context: EventLoopContext, _ ended: @escaping (PrefetchOutcome) -> Void
    ) {
        let read = NIOThreadPool.singleton.runIfActive(eventLoop: context.loop) {
            PrefetchOutcome(sitemap: bytes)
        }
        // Called only on the loop.
        nonisolated(unsafe) let ended = ended
        read.whenComplete { result in
            let stopping = PrefetchOutcome.failed(
                reason: "the node is stopping", hostResponded: false)
            unsafe ended((try? result.get()) ?? stopping)
        }
    }

    /// Sends an internal request for `url`, and keeps `bodyBytesMax` bytes of the body; a URL that
    /// cannot be requested yields a response without a status.
    private func send(
        _ url: String, accept: String, bodyBytesMax: Int, on context: EventLoopContext,
        _ completion: @escaping (InternalRequest.Response) -> Void
    ) {
        guard let question = InternalRequestHead(url, accept: accept, sites: context.settings.sites)
        else { return completion(InternalRequest.Response()) }
        InternalRequest(on: context, bodyBytesMax: bodyBytesMax).begin(question, completion)
    }

    /// Records the outcome of an item and runs the next ones.
    private func itemFinished(
        _ step: PrefetchJobTable.ScheduledItem, _ ending: PrefetchOutcome, on node: NodeCore
    ) {
        let document = state.withLock { $0.list.itemFinished(step, ending, at: SystemClock.now()) }
        if let document { Self.log(document, to: node.logger) }
        runDueItems(node)
    }

    /// Logs the end of a job with its totals.
    private static func log(_ document: PrefetchDocument, to logger: Logger) {
        logger.notice(
            "prefetch ended",
            metadata: [
                "prefetch": "\(document.prefetch)", "state": "\(document.state)",
                "urls": "\(document.urlsTotal)", "held": "\(document.urlsCached)",
                "fetched": "\(document.urlsFetched)", "failed": "\(document.urlsFailed)",
                "milliseconds": "\(document.elapsedMilliseconds)",
            ])
    }
}
