package import Ground

/// One prefetch job: its queue, its running items and its results.
///
/// The job limits its load: at most ``runningMax`` requests at once, and after a host or the node
/// was too busy, a pause for that host only.
package struct PrefetchJob: Sendable {
    /// A unit of work: one URL or one sitemap to request.
    package enum Item: Hashable, Sendable {
        case url(String)
        case sitemap(String)
    }

    /// The outcome of an item.
    package enum ItemOutcome: Hashable, Sendable {
        /// The response was in the cache, and is valid.
        case cached(bodyBytes: UInt64)
        /// The response was fetched from an origin or another node.
        case fetched(bodyBytes: UInt64)
        case sitemap(Sitemap)
        /// The item, and others of its host, must be retried later.
        ///
        /// The host could not be reached or, if `isHostFault` is false, a limit of the node was
        /// reached. `retryAfter` is `nil` if no time was given.
        case deferred(reason: String, retryAfter: Interval?, isHostFault: Bool = true)
        /// The item failed for good; a response from the host resets its back-off.
        case failed(reason: String, hostResponded: Bool = true)
    }

    /// The name of the job.
    package let name: String
    /// The value of Accept for the requests.
    package let accept: String
    private let startedAt: Instant
    private var endedAt: Instant?
    /// The counts and failures; what follows from them is computed when it is shown.
    private var document: PrefetchDocument
    /// All URLs, without duplicates, in the order in which they were added.
    private var urls: [String] = []
    private var seenURLs: Set<String> = []
    /// The job's sitemap and those that it lists.
    private var sitemaps: [String] = []
    /// The number of ``sitemaps`` that have been tried, delayed or failed.
    private var sitemapsDequeued = 0
    /// The items that wait for the end of a pause, and the pauses.
    private var delays = HostBackoff()
    private var running: [Item: RunningItem] = [:]
    /// The number of ``urls`` that have been tried, delayed or failed.
    private var urlsDequeued = 0

    private struct RunningItem {
        /// The number of attempts before this one.
        let attempts: Int
        let startedAt: Instant
    }

    /// The maximum number of concurrent requests of one job.
    package static let runningMax = 4
    /// The maximum number of attempts of an item that is deferred.
    package static let attemptsMax = 10

    /// Creates a job that starts at `now`.
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

    /// True if no more items are started.
    package var isFinished: Bool { document.state.isFinished }

    /// True if the job is finished and no request is running; a cancelled job may still have some.
    package var isDrained: Bool { isFinished && running.isEmpty }

    /// Returns the document of the job as of `now`.
    package func document(at now: Instant) -> PrefetchDocument {
        var shown = document
        shown.urlsDone = document.urlsCached + document.urlsFetched + document.urlsFailed
        shown.elapsedMilliseconds = max(.zero, (endedAt ?? now) - startedAt).milliseconds
        return shown
    }

    // MARK: - Scheduling

    /// Dequeues the next item, which counts as running until ``itemFinished(_:_:at:)``.
    ///
    /// Returns `nil` if the job is finished, ``runningMax`` items are running, or no other may be
    /// started now.
    package mutating func dequeue(at now: Instant) -> Item? {
        guard !isFinished, running.count < Self.runningMax, let next = next(at: now) else {
            return nil
        }
        running[next.task] = RunningItem(attempts: next.attempts, startedAt: now)
        return next.task
    }

    /// Removes and returns the next item that may be started: a delayed one before an untried one.
    ///
    /// Untried items of hosts that are backing off are delayed on the way, and those of failed
    /// hosts fail.
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

    /// The next item that was not tried yet.
    private var nextUntried: Item? {
        if sitemapsDequeued < sitemaps.count { return .sitemap(sitemaps[sitemapsDequeued]) }
        return urlsDequeued < urls.count ? .url(urls[urlsDequeued]) : nil
    }

    /// Removes the next item that was not tried yet from its queue.
    private mutating func dropNextUntried() {
        if sitemapsDequeued < sitemaps.count { sitemapsDequeued += 1 } else { urlsDequeued += 1 }
    }

    /// Records the outcome of an item that was dequeued, and finishes the job if nothing is left.
    ///
    /// A deferred item is delayed again, or fails after ``attemptsMax`` or once its host is given
    /// up. The URLs of a sitemap are added unless the job was already finished.
    package mutating func itemFinished(_ task: Item, _ ending: ItemOutcome, at now: Instant) {
        guard let item = running.removeValue(forKey: task) else {
            preconditionFailure("an item has finished that was not dequeued")
        }
        let wasOver = isFinished
        delays.record(from: ending, of: task, takenAt: item.startedAt, at: now)
        let attempts = item.attempts + 1
        switch ending {
        case .deferred where attempts < Self.attemptsMax && !delays.isHostFailed(task):
            delays.enqueue(task, attempts: attempts)
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

    /// Fails the delayed items of hosts that were given up, and such items at the head of the
    /// queue, so that the job can finish.
    private mutating func failItemsOfFailedHosts(at now: Instant) {
        for (task, why) in delays.removeItemsOfFailedHosts() { recordFailure(task, why) }
        while let nextUntried, case .failed(let why) = delays.state(of: nextUntried, at: now) {
            dropNextUntried()
            recordFailure(nextUntried, why)
        }
    }

    /// Cancels the job unless it is finished: no more items are started, and running ones finish.
    package mutating func cancel(at now: Instant) {
        guard !isFinished else { return }
        document.state = .cancelled
        endedAt = now
        if isDrained { releaseQueues() }
    }

    // MARK: - Results

    /// Adds a URL to the queue unless it was added before.
    private mutating func add(_ url: String) {
        guard seenURLs.insert(url).inserted else { return }
        urls.append(url)
        document.urlsTotal = urls.count
    }

    /// Adds the images of a sitemap, up to the limit of a job, and the sitemaps that the job's
    /// first one lists; lists what was skipped as failures.
    private mutating func addLocations(_ sitemap: Sitemap, named task: Item) {
        document.state = .running
        // The protocol allows one level of index only.
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
                url, "\(sitemap.rejectedCount) of its entries are not URLs and were skipped")
        }
        guard isCut else { return }
        appendFailure(
            url,
            "it lists more than \(PrefetchRequest.urlsMax) images or "
                + "\(Sitemap.sitemapsMax) sitemaps; the rest was skipped")
    }

    /// Counts a failed item; the job fails with its first sitemap.
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

    /// Adds a failure to the document, up to the limit of its list.
    private mutating func appendFailure(_ url: String, _ why: String) {
        guard document.failures.count < PrefetchDocument.failuresMax else { return }
        document.failures.append(PrefetchDocument.Failure(url: url, reason: why))
    }

    /// Finishes the job if nothing is queued, delayed or running; records the end of a finished
    /// job.
    private mutating func finishIfDone(at now: Instant) {
        let isAllTaken = urlsDequeued == urls.count && sitemapsDequeued == sitemaps.count
        if !isFinished, running.isEmpty, isAllTaken, delays.isEmpty {
            document.state = .done
            if urls.isEmpty, let sitemap = document.sitemap {
                appendFailure(sitemap, "it lists no images")
            }
        }
        if isFinished, endedAt == nil { endedAt = now }
        if isDrained { releaseQueues() }
    }

    /// Releases the queues of a finished job.
    private mutating func releaseQueues() {
        (urls, sitemaps, delays) = ([], [], HostBackoff())
        seenURLs = []
    }
}
