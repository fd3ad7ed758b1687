package import Ground

/// One prefetch: what is still to be asked for, what came of the rest, and what is next.
///
/// It goes gently: at most ``runningMax`` questions at once, and none for a while after the node
/// has said that it is busy.
package struct Prefetch: Sendable {
    /// What is asked next.
    package enum Task: Hashable, Sendable {
        case url(String)
        case sitemap(String)
    }

    /// What came of a task.
    package enum Ending: Hashable, Sendable {
        /// Was here, and is good.
        case held(bodyBytes: UInt64)
        /// Came from elsewhere.
        case fetched(bodyBytes: UInt64)
        case sitemap(Sitemap)
        /// A limit of the node was reached, and reads in words; nil if it did not say for how long.
        case busy(why: String, retryAfter: Interval?)
        case failed(why: String)
    }

    package let name: String
    package let accept: String
    private let startedAt: Instant
    private var endedAt: Instant?
    private var document: PrefetchDocument
    private var urls: [String] = []
    private var known: Set<String> = []
    private var sitemaps: [String] = []
    private var sitemapsTaken = 0
    /// Tasks that the node was too busy for, and how often.
    private var again: [(task: Task, attempts: Int)] = []
    private var attempts: [Task: Int] = [:]
    private var urlsTaken = 0
    private var running = 0
    private var pausedUntil = Instant.zero

    /// Questions of one prefetch at once.
    package static let runningMax = 4
    /// Times that one task is tried while the node is busy.
    package static let attemptsMax = 10
    /// How long nothing is asked after a node that is busy has not said how long it will be.
    package static let pause = Interval.seconds(1)
    /// And at most, whatever it says.
    package static let pauseMax = Interval.seconds(30)

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

    package var isOver: Bool { document.state.isOver }

    /// What was cancelled may still have questions under way.
    package var isQuiet: Bool { isOver && running == 0 }

    /// As it is to be shown at `now`.
    package func document(at now: Instant) -> PrefetchDocument {
        var shown = document
        shown.runningMilliseconds = max(.zero, (endedAt ?? now) - startedAt).milliseconds
        return shown
    }

    // MARK: What is next

    /// The next task, which then runs until it is told to have ended; nil if there is none now.
    package mutating func take(at now: Instant) -> Task? {
        guard !isOver, running < Self.runningMax, now >= pausedUntil else { return nil }
        let task: Task
        if sitemapsTaken < sitemaps.count {
            task = .sitemap(sitemaps[sitemapsTaken])
            sitemapsTaken += 1
        } else if !again.isEmpty {
            let (waiting, count) = again.removeFirst()
            attempts[waiting] = count
            task = waiting
        } else if urlsTaken < urls.count {
            task = .url(urls[urlsTaken])
            urlsTaken += 1
        } else {
            return nil
        }
        running += 1
        return task
    }

    /// What was taken has ended so.
    package mutating func ended(_ task: Task, _ ending: Ending, at now: Instant) {
        running -= 1
        let wasOver = isOver
        let tried = (attempts.removeValue(forKey: task) ?? 0) + 1
        switch ending {
        case .busy(_, let retryAfter) where tried < Self.attemptsMax:
            again.append((task, tried))
            let pause = min(max(retryAfter ?? Self.pause, Self.pause), Self.pauseMax)
            pausedUntil = max(pausedUntil, now + pause)
        case .busy(let why, _), .failed(let why): failed(task, why)
        case .held(let bytes):
            document.urlsHeld += 1
            document.bodyBytes += bytes
        case .fetched(let bytes):
            document.urlsFetched += 1
            document.bodyBytes += bytes
        case .sitemap(let sitemap): if !wasOver { take(sitemap, named: task) }
        }
        document.urlsDone = document.urlsHeld + document.urlsFetched + document.urlsFailed
        settle(at: now)
    }

    /// Begins nothing more.
    package mutating func cancel(at now: Instant) {
        guard !isOver else { return }
        document.state = .cancelled
        endedAt = now
        if isQuiet { forget() }
    }

    // MARK: What comes of it

    private mutating func add(_ url: String) {
        guard known.insert(url).inserted else { return }
        urls.append(url)
        document.urlsTotal = urls.count
    }

    private mutating func take(_ sitemap: Sitemap, named task: Task) {
        document.state = .running
        // The protocol has one index at most above the rest.
        if case .sitemap(let url) = task, url == document.sitemap {
            for further in sitemap.sitemaps where !sitemaps.contains(further) {
                sitemaps.append(further)
            }
        }
        var isCut = sitemap.isCut
        for image in sitemap.images {
            guard urls.count < PrefetchRequest.urlsMax || known.contains(image) else {
                isCut = true
                break
            }
            add(image)
        }
        guard case .sitemap(let url) = task else { return }
        if sitemap.refusedCount > 0 {
            note(url, "\(sitemap.refusedCount) of its names are no URLs, and are left out")
        }
        guard isCut else { return }
        note(
            url,
            "it names more than \(PrefetchRequest.urlsMax) images or "
                + "\(Sitemap.sitemapsMax) sitemaps, and the rest is left out")
    }

    private mutating func failed(_ task: Task, _ why: String) {
        switch task {
        case .url(let url):
            document.urlsFailed += 1
            note(url, why)
        case .sitemap(let url):
            note(url, why)
            if !isOver, url == document.sitemap { document.state = .failed }
        }
    }

    private mutating func note(_ url: String, _ why: String) {
        guard document.faults.count < PrefetchDocument.faultsMax else { return }
        document.faults.append(PrefetchDocument.Fault(url: url, why: why))
    }

    private mutating func settle(at now: Instant) {
        let isAllTaken = urlsTaken == urls.count && sitemapsTaken == sitemaps.count
        if !isOver, running == 0, isAllTaken, again.isEmpty {
            document.state = .done
            if urls.isEmpty, let sitemap = document.sitemap { note(sitemap, "it names no image") }
        }
        if isOver, endedAt == nil { endedAt = now }
        if isQuiet { forget() }
    }

    /// Nobody asks any more what was to be asked.
    private mutating func forget() {
        (urls, sitemaps, again) = ([], [], [])
        known = []
        attempts = [:]
    }
}
