package import Ground

/// One prefetch: what is still to be asked for, what came of the rest, and what is next.
///
/// It goes gently: at most ``runningMax`` questions at once, and none about a host for a while
/// after the node has said that it is too busy for it; other hosts do not wait for that one.
package struct PrefetchJob: Sendable {
    /// What is asked next.
    package enum Item: Hashable, Sendable {
        case url(String)
        case sitemap(String)
    }

    /// What came of a task.
    package enum ItemOutcome: Hashable, Sendable {
        /// Was here, and is good.
        case cached(bodyBytes: UInt64)
        /// Came from elsewhere.
        case fetched(bodyBytes: UInt64)
        case sitemap(Sitemap)
        /// It is to be asked again later, and so is what else is of its host: that is not reached,
        /// or, unless `isOfHost`, a limit of the node was. `retryAfter` is nil if nothing was said
        /// of how long.
        case deferred(reason: String, retryAfter: Interval?, isHostFault: Bool = true)
        /// Others of its host may fare better; they do if the host has answered.
        case failed(reason: String, hostResponded: Bool = true)
    }

    package let name: String
    package let accept: String
    private let startedAt: Instant
    private var endedAt: Instant?
    private var document: PrefetchDocument
    private var urls: [String] = []
    private var seenURLs: Set<String> = []
    private var sitemaps: [String] = []
    private var sitemapsDequeued = 0
    private var delays = HostBackoff()
    private var running: [Item: RunningItem] = [:]
    private var urlsDequeued = 0

    private struct RunningItem {
        /// How often it was tried before.
        let attempts: Int
        let startedAt: Instant
    }

    /// Questions of one prefetch at once.
    package static let runningMax = 4
    /// Times that one task is tried while it is to be asked again later.
    package static let attemptsMax = 10

    package init(_ request: PrefetchRequest, name: String, at now: Instant) {
        self.name = name
        accept = request.accept
        startedAt = now
        switch request.source {
        case .urls(let given):
            document = PrefetchDocument(prefetch: name, source: .urls, state: .running)
            for url in given { add(url) }
        case .sitemap(let url):
            document = PrefetchDocument(
                prefetch: name, source: .sitemap, sitemap: url, state: .reading)
            sitemaps = [url]
        }
    }

    package var isFinished: Bool { document.state.isFinished }

    /// What was cancelled may still have questions under way.
    package var isDrained: Bool { isFinished && running.isEmpty }

    /// As it is to be shown at `now`.
    package func document(at now: Instant) -> PrefetchDocument {
        var shown = document
        shown.urlsDone = document.urlsCached + document.urlsFetched + document.urlsFailed
        shown.elapsedMilliseconds = max(.zero, (endedAt ?? now) - startedAt).milliseconds
        return shown
    }

    // MARK: What is next

    /// The next task, which then runs until it is told to have ended; nil if there is none now.
    package mutating func dequeue(at now: Instant) -> Item? {
        guard !isFinished, running.count < Self.runningMax, let next = next(at: now) else {
            return nil
        }
        running[next.task] = RunningItem(attempts: next.attempts, startedAt: now)
        return next.task
    }

    private mutating func next(at now: Instant) -> HostBackoff.DelayedItem? {
        if let waiting = delays.dequeue(at: now) { return waiting }
        while let nextUntried {
            dropNextUntried()
            switch delays.state(of: nextUntried, at: now) {
            case .available: return (nextUntried, 0)
            case .backingOff: delays.enqueue(nextUntried, attempts: 0)
            case .failed(let why): recordFailure(nextUntried, why)
            }
        }
        return nil
    }

    /// What was not tried yet.
    private var nextUntried: Item? {
        if sitemapsDequeued < sitemaps.count { return .sitemap(sitemaps[sitemapsDequeued]) }
        return urlsDequeued < urls.count ? .url(urls[urlsDequeued]) : nil
    }

    private mutating func dropNextUntried() {
        if sitemapsDequeued < sitemaps.count { sitemapsDequeued += 1 } else { urlsDequeued += 1 }
    }

    /// What was taken has ended so.
    package mutating func itemFinished(_ task: Item, _ ending: ItemOutcome, at now: Instant) {
        guard let run = running.removeValue(forKey: task) else {
            preconditionFailure("a task has ended that was not taken")
        }
        let wasOver = isFinished
        delays.record(from: ending, of: task, takenAt: run.startedAt, at: now)
        let tried = run.attempts + 1
        switch ending {
        case .deferred where tried < Self.attemptsMax && !delays.isHostFailed(task):
            delays.enqueue(task, attempts: tried)
        case .deferred(let why, _, _), .failed(let why, _): recordFailure(task, why)
        case .cached(let bytes):
            document.urlsCached += 1
            document.bodyBytes += bytes
        case .fetched(let bytes):
            document.urlsFetched += 1
            document.bodyBytes += bytes
        case .sitemap(let sitemap): if !wasOver { addLocations(sitemap, named: task) }
        }
        if !isFinished { failItemsOfFailedHosts(at: now) }
        finishIfDone(at: now)
    }

    /// Has failed what would only wait for others to end: with the last of those it is over.
    private mutating func failItemsOfFailedHosts(at now: Instant) {
        for (task, why) in delays.removeItemsOfFailedHosts() { recordFailure(task, why) }
        while let nextUntried, case .failed(let why) = delays.state(of: nextUntried, at: now) {
            dropNextUntried()
            recordFailure(nextUntried, why)
        }
    }

    /// Begins nothing more.
    package mutating func cancel(at now: Instant) {
        guard !isFinished else { return }
        document.state = .cancelled
        endedAt = now
        if isDrained { releaseQueues() }
    }

    // MARK: What comes of it

    private mutating func add(_ url: String) {
        guard seenURLs.insert(url).inserted else { return }
        urls.append(url)
        document.urlsTotal = urls.count
    }

    private mutating func addLocations(_ sitemap: Sitemap, named task: Item) {
        document.state = .running
        // The protocol has one index at most above the rest.
        if case .sitemap(let url) = task, url == document.sitemap {
            for further in sitemap.sitemaps where !sitemaps.contains(further) {
                sitemaps.append(further)
            }
        }
        var isCut = sitemap.isTruncated
        for image in sitemap.images {
            guard urls.count < PrefetchRequest.urlsMax || seenURLs.contains(image) else {
                isCut = true
                break
            }
            add(image)
        }
        guard case .sitemap(let url) = task else { return }
        if sitemap.rejectedCount > 0 {
            appendFailure(
                url, "\(sitemap.rejectedCount) of its names are no URLs, and are left out")
        }
        guard isCut else { return }
        appendFailure(
            url,
            "it names more than \(PrefetchRequest.urlsMax) images or "
                + "\(Sitemap.sitemapsMax) sitemaps, and the rest is left out")
    }

    private mutating func recordFailure(_ task: Item, _ why: String) {
        switch task {
        case .url(let url):
            document.urlsFailed += 1
            appendFailure(url, why)
        case .sitemap(let url):
            document.sitemapsFailed += 1
            appendFailure(url, why)
            if !isFinished, url == document.sitemap { document.state = .failed }
        }
    }

    private mutating func appendFailure(_ url: String, _ why: String) {
        guard document.failures.count < PrefetchDocument.failuresMax else { return }
        document.failures.append(PrefetchDocument.Failure(url: url, why: why))
    }

    private mutating func finishIfDone(at now: Instant) {
        let isAllTaken = urlsDequeued == urls.count && sitemapsDequeued == sitemaps.count
        if !isFinished, running.isEmpty, isAllTaken, delays.isEmpty {
            document.state = .done
            if urls.isEmpty, let sitemap = document.sitemap {
                appendFailure(sitemap, "it names no image")
            }
        }
        if isFinished, endedAt == nil { endedAt = now }
        if isDrained { releaseQueues() }
    }

    /// Nobody asks any more what was to be asked.
    private mutating func releaseQueues() {
        (urls, sitemaps, delays) = ([], [], HostBackoff())
        seenURLs = []
    }
}
