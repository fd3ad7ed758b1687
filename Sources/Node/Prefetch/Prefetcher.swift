import Admin
import Ground
import HTTPRules
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Carries out prefetches, on all loops in turn.
final class Prefetcher: Sendable {
    private struct State {
        var list = PrefetchList()
        var nextLoop = 0
    }

    private let state = Mutex(State())
    /// False while ``ticked(_:)`` has nothing to do.
    private let isBusy = Atomic<Bool>(false)

    // MARK: For operators

    func documents() -> [PrefetchDocument] {
        state.withLock { $0.list.documents(at: SystemClock.now()) }
    }

    func document(_ name: String) -> PrefetchDocument? {
        state.withLock { $0.list.document(name, at: SystemClock.now()) }
    }

    func begin(
        _ request: PrefetchRequest, on node: NodeCore
    ) throws(PrefetchList.Refusal) -> PrefetchDocument {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        let name = String(repeating: "0", count: 16 - digits.count) + digits
        let begun = state.withLock { state in
            Result<PrefetchDocument, PrefetchList.Refusal> { () throws(PrefetchList.Refusal) in
                try state.list.begin(request, name: name, at: SystemClock.now())
            }
        }
        let document = try begun.get()
        node.logger.notice(
            "prefetch begins",
            metadata: ["prefetch": "\(name)", "urls": "\(document.urlsTotal)"])
        isBusy.store(true, ordering: .relaxed)
        goOn(node)
        return document
    }

    /// Nil if there is no such one.
    func cancel(_ name: String, on node: NodeCore) -> PrefetchDocument? {
        if let cancelled = state.withLock({ $0.list.cancel(name, at: SystemClock.now()) }) {
            Self.log(cancelled, to: node.logger)
        }
        return document(name)
    }

    /// The node stops.
    func cancelAll(on node: NodeCore) {
        let cancelled = state.withLock { $0.list.cancelAll(at: SystemClock.now()) }
        for document in cancelled { Self.log(document, to: node.logger) }
    }

    /// Goes on with what had to wait; called again and again.
    func ticked(_ node: NodeCore) {
        guard isBusy.load(ordering: .relaxed) else { return }
        goOn(node)
    }

    // MARK: Steps

    private func goOn(_ node: NodeCore) {
        let halls = node.halls
        guard !halls.isEmpty else { return }
        let steps = state.withLock { state in
            let steps = state.list.take(at: SystemClock.now())
            if state.list.isIdle { isBusy.store(false, ordering: .relaxed) }
            return steps.map { step in
                state.nextLoop = (state.nextLoop + 1) % halls.count
                return (step, state.nextLoop)
            }
        }
        for (step, loop) in steps {
            let hall = halls[loop]
            hall.loop.execute { self.carryOut(step, on: hall) }
        }
    }

    private func carryOut(_ step: PrefetchList.Step, on hall: Hall) {
        let ended = { (ending: PrefetchEnding) in self.ended(step, ending, on: hall.node) }
        switch step.task {
        case .url(let url):
            ask(url, accept: step.accept, bodyBytesMax: 2_048, on: hall) { ended($0.ending) }
        case .sitemap(let url): read(url, on: hall, ended)
        }
    }

    private func read(
        _ url: String, on hall: Hall, _ ended: @escaping (PrefetchEnding) -> Void
    ) {
        let question = ErrandQuestion(url, accept: "*/*", sites: hall.settings.sites)
        guard question?.isOfSite != true else {
            return ask(url, accept: "*/*", bodyBytesMax: Sitemap.bytesMax, on: hall) { report in
                guard report.status == 200 else { return ended(report.ending) }
                guard !report.isBodyCut else { return ended(.failed(why: Sitemap.tooLarge)) }
                self.parse(report.body, on: hall, ended)
            }
        }
        var key: [UInt8] = []
        let bytes = Array(url.utf8)
        let made = CacheKey.normalise(
            url: bytes.span, at: 0..<bytes.count, into: &key,
            bytesMax: hall.settings.urlBytesMax)
        if case .refused(let refusal) = made {
            return ended(.failed(why: refusal.sentence))
        }
        SitemapFetch().begin(key, on: hall) { result in
            switch result {
            case .success(let bytes): self.parse(bytes, on: hall, ended)
            case .failure(let failure): ended(failure.ending)
            }
        }
    }

    /// Reads a sitemap where that may take its time; tells of it on the loop.
    private func parse(
        _ bytes: [UInt8], on hall: Hall, _ ended: @escaping (PrefetchEnding) -> Void
    ) {
        let read = NIOThreadPool.singleton.runIfActive(eventLoop: hall.loop) {
            PrefetchEnding(sitemap: bytes)
        }
        // Called on the loop alone.
        nonisolated(unsafe) let ended = ended
        read.whenComplete { result in
            let stopping = PrefetchEnding.failed(why: "the node is stopping", hasAnswered: false)
            unsafe ended((try? result.get()) ?? stopping)
        }
    }

    private func ask(
        _ url: String, accept: String, bodyBytesMax: Int, on hall: Hall,
        _ told: @escaping (Errand.Report) -> Void
    ) {
        guard let question = ErrandQuestion(url, accept: accept, sites: hall.settings.sites)
        else { return told(Errand.Report()) }
        Errand(on: hall, bodyBytesMax: bodyBytesMax).begin(question, told)
    }

    private func ended(_ step: PrefetchList.Step, _ ending: PrefetchEnding, on node: NodeCore) {
        let document = state.withLock { $0.list.ended(step, ending, at: SystemClock.now()) }
        if let document { Self.log(document, to: node.logger) }
        goOn(node)
    }

    private static func log(_ document: PrefetchDocument, to logger: Logger) {
        logger.notice(
            "prefetch ends",
            metadata: [
                "prefetch": "\(document.prefetch)", "state": "\(document.state)",
                "urls": "\(document.urlsTotal)", "held": "\(document.urlsHeld)",
                "fetched": "\(document.urlsFetched)", "failed": "\(document.urlsFailed)",
                "milliseconds": "\(document.runningMilliseconds)",
            ])
    }
}
