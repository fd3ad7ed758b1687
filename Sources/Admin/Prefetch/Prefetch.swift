package import Ground

/// One prefetch: what is still to be asked for, what came of the rest, and what is next.
///
/// It goes gently: at most ``runningMax`` questions at once, and none about a host for a while
/// after the node has said that it is too busy for it; other hosts do not wait for that one.
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
        /// It is to be asked again later, and so is what else is of its host: that is not reached,
        /// or, unless `isOfHost`, a limit of the node was. `retryAfter` is nil if nothing was said
        /// of how long.
        case busy(why: String, retryAfter: Interval?, isOfHost: Bool = true)
        /// Others of its host may fare better; they do if the host has answered.
        case failed(why: String, hasAnswered: Bool = true)
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
    private var delays = PrefetchDelays()
    private var running: [Task: Running] = [:]
    private var urlsTaken = 0

    private struct Running {
        /// How often it was tried before.
        let attempts: Int
        let takenAt: Instant
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

    package var isOver: Bool { document.state.isOver }

    /// What was cancelled may still have questions under way.
    package var isQuiet: Bool { isOver && running.isEmpty }

    /// As it is to be shown at `now`.
    package func document(at now: Instant) -> PrefetchDocument {
        var shown = document
        shown.urlsDone = document.urlsHeld + document.urlsFetched + document.urlsFailed
        shown.runningMilliseconds = max(.zero, (endedAt ?? now) - startedAt).milliseconds
        return shown
    }

    // MARK: What is next

    /// The next task, which then runs until it is told to have ended; nil if there is none now.
    package mutating func take(at now: Instant) -> Task? {
        guard !isOver, running.count < Self.runningMax, let next = next(at: now) else {
            return nil
        }
        running[next.task] = Running(attempts: next.attempts, takenAt: now)
        return next.task
    }

    private mutating func next(at now: Instant) -> PrefetchDelays.Waiting? {
        if let waiting = delays.take(at: now) { return waiting }
        while let fresh {
            skip()
            switch delays.standing(of: fresh, at: now) {
            case .open: return (fresh, 0)
            case .paused: delays.wait(fresh, attempts: 0)
            case .givenUp(let why): failed(fresh, why)
            }
        }
        return nil
    }

    /// What was not tried yet.
    private var fresh: Task? {
        if sitemapsTaken < sitemaps.count { return .sitemap(sitemaps[sitemapsTaken]) }
        return urlsTaken < urls.count ? .url(urls[urlsTaken]) : nil
    }

    private mutating func skip() {
        if sitemapsTaken < sitemaps.count { sitemapsTaken += 1 } else { urlsTaken += 1 }
    }

    /// What was taken has ended so.
    package mutating func ended(_ task: Task, _ ending: Ending, at now: Instant) {
        guard let run = running.removeValue(forKey: task) else {
            preconditionFailure("a task has ended that was not taken")
        }
        let wasOver = isOver
        delays.learn(from: ending, of: task, takenAt: run.takenAt, at: now)
        let tried = run.attempts + 1
        switch ending {
        case .busy where tried < Self.attemptsMax && !delays.hasGivenUp(task):
            delays.wait(task, attempts: tried)
        case .busy(let why, _, _), .failed(let why, _): failed(task, why)
        case .held(let bytes):
            document.urlsHeld += 1
            document.bodyBytes += bytes
        case .fetched(let bytes):
            document.urlsFetched += 1
            document.bodyBytes += bytes
        case .sitemap(let sitemap): if !wasOver { take(sitemap, named: task) }
        }
        if !isOver { dropGivenUp(at: now) }
        settle(at: now)
    }

    /// Has failed what would only wait for others to end: with the last of those it is over.
    private mutating func dropGivenUp(at now: Instant) {
        for (task, why) in delays.takeGivenUp() { failed(task, why) }
        while let fresh, case .givenUp(let why) = delays.standing(of: fresh, at: now) {
            skip()
            failed(fresh, why)
        }
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
            document.sitemapsFailed += 1
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
        if !isOver, running.isEmpty, isAllTaken, delays.isEmpty {
            document.state = .done
            if urls.isEmpty, let sitemap = document.sitemap { note(sitemap, "it names no image") }
        }
        if isOver, endedAt == nil { endedAt = now }
        if isQuiet { forget() }
    }

    /// Nobody asks any more what was to be asked.
    private mutating func forget() {
        (urls, sitemaps, delays) = ([], [], PrefetchDelays())
        known = []
    }
}
