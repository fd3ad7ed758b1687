import Admin
import Ground
import Testing

@Suite("Prefetches")
struct PrefetchTests {
    private static let start = Instant.zero + .seconds(100)

    private func urls(_ range: Range<Int>) -> [String] { range.map { "http://a.example/\($0)" } }

    private func list(
        _ source: PrefetchRequest.Source
    ) throws -> PrefetchJobTable {
        var list = PrefetchJobTable()
        _ = try list.start(PrefetchRequest(source), name: "p", at: Self.start)
        return list
    }

    private func sitemap(_ text: String) throws -> PrefetchJob.ItemOutcome {
        .sitemap(try Sitemap(Array(text.utf8), imagesMax: PrefetchRequest.urlsMax))
    }

    @Test("Every URL is requested once, a few at a time, and the outcomes are counted")
    func whole() throws {
        var list = try list(.urls(urls(0..<10)))
        var asked: [PrefetchJob.Item] = []
        var under: [PrefetchJobTable.ScheduledItem] = []
        var now = Self.start
        var last: PrefetchDocument?
        while !list.areAllFinished {
            under += list.dequeue(at: now)
            #expect(under.count <= PrefetchJob.runningMax && !under.isEmpty)
            now = now + .milliseconds(10)
            let step = under.removeFirst()
            asked.append(step.task)
            let ending: PrefetchJob.ItemOutcome =
                switch asked.count % 3 {
                case 0: .cached(bodyBytes: 1)
                case 1: .fetched(bodyBytes: 10)
                default: .failed(reason: "it responded with 404")
                }
            if let document = list.itemFinished(step, ending, at: now) { last = document }
        }
        #expect(asked == urls(0..<10).map(PrefetchJob.Item.url))
        let document = try #require(last)
        #expect(document.state == .done && document.urlsTotal == 10 && document.urlsDone == 10)
        #expect(document.urlsCached == 3 && document.urlsFetched == 4 && document.urlsFailed == 3)
        #expect(document.bodyBytes == 43 && document.elapsedMilliseconds == 100)
        #expect(document.failures.map(\.url) == [1, 4, 7].map { "http://a.example/\($0)" })
        #expect(list.document("p", at: now + .seconds(9)) == document)
        #expect(ShapeCheck.faults(document.json, .getPrefetch) == [])
    }

    @Test("A busy node is left alone as long as it says, then tried again")
    func busy() throws {
        var list = try list(.urls(urls(0..<1)))
        var now = Self.start
        // It says three seconds, which count only for a while.
        let pauses: [Int64] = [3, 3, 4, 8, 16, 30]
        for (attempt, pause) in zip(1...HostBackoff.failuresMax, pauses) {
            let step = try #require(list.dequeue(at: now).first, "attempt \(attempt)")
            let document = list.itemFinished(
                step, .deferred(reason: "it answered 503", retryAfter: .seconds(3)), at: now)
            #expect((document != nil) == (attempt == HostBackoff.failuresMax))
            #expect(list.dequeue(at: now + .milliseconds(pause * 1_000 - 1)).isEmpty)
            now = now + .seconds(pause)
        }
        let document = try #require(list.document("p", at: now))
        #expect(document.state == .done && document.urlsFailed == 1)
        #expect(document.failures == [.init(url: urls(0..<1)[0], reason: "it answered 503")])
    }

    @Test("A pause lasts between a second and half a minute, whatever the node says")
    func pauses() throws {
        for (retryAfter, pause) in [
            (nil, HostBackoff.backoffMin), (.zero, HostBackoff.backoffMin),
            (.seconds(3_600), HostBackoff.backoffMax),
        ] as [(Interval?, Interval)] {
            var list = try list(.urls(urls(0..<1)))
            let step = try #require(list.dequeue(at: Self.start).first)
            _ = list.itemFinished(
                step, .deferred(reason: "", retryAfter: retryAfter), at: Self.start)
            #expect(list.dequeue(at: Self.start + pause - .milliseconds(1)).isEmpty)
            #expect(list.dequeue(at: Self.start + pause) == [step])
        }
    }

    @Test("A busy host does not delay another; its URLs are requested later")
    func hosts() throws {
        let mixed = (0..<6).flatMap { ["http://dead.example/\($0)", "http://a.example/\($0)"] }
        var list = try list(.urls(mixed))
        var asked: [String] = []
        while true {
            let steps = list.dequeue(at: Self.start)
            if steps.isEmpty { break }
            for step in steps {
                guard case .url(let url) = step.task else { continue }
                asked.append(url)
                let isDead = url.contains("dead")
                _ = list.itemFinished(
                    step,
                    isDead ? .deferred(reason: "503", retryAfter: nil) : .cached(bodyBytes: 1),
                    at: Self.start)
            }
        }
        #expect(asked.filter { $0.contains("a.example") }.count == 6)
        // Those that were in progress together.
        #expect(asked.filter { $0.contains("dead") }.count == 2)
        let later = list.dequeue(at: Self.start + HostBackoff.backoffMin)
        #expect(later.count == PrefetchJob.runningMax)
        for step in later { _ = list.itemFinished(step, .cached(bodyBytes: 1), at: Self.start) }
        for step in list.dequeue(at: Self.start + HostBackoff.backoffMin) {
            _ = list.itemFinished(step, .cached(bodyBytes: 1), at: Self.start)
        }
        let document = list.document("p", at: Self.start)
        #expect(document?.state == .done && document?.urlsCached == 12)
    }

    @Test(
        "A host that only fails is given up with all its URLs",
        arguments: [
            [PrefetchJob.ItemOutcome.deferred(reason: "no connection", retryAfter: nil)],
            [
                .deferred(reason: "no connection", retryAfter: .seconds(50)),
                .failed(reason: "it answered 500", hostResponded: false),
                .deferred(reason: "no connection", retryAfter: nil, isHostFault: false),
            ],
        ])
    func givenUp(endings: [PrefetchJob.ItemOutcome]) throws {
        var list = try list(.urls(urls(0..<5_000)))
        var now = Self.start
        var asked = 0
        var end: PrefetchDocument?
        while !list.areAllFinished {
            let steps = list.dequeue(at: now)
            #expect(!steps.isEmpty && end == nil)
            for step in steps {
                end = list.itemFinished(step, endings[asked % endings.count], at: now) ?? end
                asked += 1
            }
            now = now + HostBackoff.backoffMax
        }
        #expect(asked <= 3 * HostBackoff.failuresMax * PrefetchJob.runningMax)
        #expect(now - Self.start >= .seconds(30))
        #expect(end?.state == .done && end?.urlsFailed == 5_000 && end?.urlsDone == 5_000)
    }

    @Test("However fast a host fails, it is tried for half a minute")
    func patience() throws {
        var list = try list(.urls(urls(0..<5_000)))
        var now = Self.start
        while !list.areAllFinished {
            for step in list.dequeue(at: now) {
                _ = list.itemFinished(step, .deferred(reason: "refused", retryAfter: nil), at: now)
            }
            now = now + .milliseconds(100)
        }
        #expect(now - Self.start >= .seconds(30) && now - Self.start < .seconds(40))
        let document = list.document("p", at: now)
        #expect(document?.urlsFailed == 5_000 && document?.failures.last?.reason == "refused")
    }

    @Test("An overloaded node is tried for longer, but not for ever")
    func overloaded() throws {
        var list = try list(.urls(urls(0..<5_000)))
        var now = Self.start
        while !list.areAllFinished {
            for step in list.dequeue(at: now) {
                let busy = PrefetchJob.ItemOutcome.deferred(
                    reason: "overloaded", retryAfter: nil, isHostFault: false)
                _ = list.itemFinished(step, busy, at: now)
            }
            now = now + .seconds(1)
        }
        #expect(now - Self.start > .seconds(300) && now - Self.start < .seconds(900))
        #expect(list.document("p", at: now)?.urlsFailed == 5_000)
    }

    @Test("A late failure of a request from before a pause extends it and counts once with it")
    func late() throws {
        var list = try list(.urls(urls(0..<4)))
        let steps = list.dequeue(at: Self.start)
        let busy = PrefetchJob.ItemOutcome.deferred(reason: "503", retryAfter: nil)
        _ = list.itemFinished(steps[0], busy, at: Self.start)
        _ = list.itemFinished(steps[1], .cached(bodyBytes: 1), at: Self.start)
        _ = list.itemFinished(steps[2], busy, at: Self.start)
        // Long after the end of the pause, for a request from before it.
        let later = Self.start + .seconds(20)
        _ = list.itemFinished(steps[3], busy, at: later)
        #expect(list.dequeue(at: later + HostBackoff.backoffMin - .milliseconds(1)).isEmpty)
        #expect(list.dequeue(at: later + HostBackoff.backoffMin).count == 3)
    }

    @Test("One URL that is always busy fails alone, while others of its host succeed")
    func one() throws {
        var list = try list(.urls(urls(0..<200)))
        var now = Self.start
        var attempts = 0
        while !list.areAllFinished {
            for step in list.dequeue(at: now) {
                let isBusy = step.task == .url(urls(0..<1)[0])
                if isBusy { attempts += 1 }
                _ = list.itemFinished(
                    step,
                    isBusy ? .deferred(reason: "503", retryAfter: nil) : .cached(bodyBytes: 1),
                    at: now)
            }
            now = now + .seconds(1)
        }
        let document = list.document("p", at: now)
        #expect(attempts == PrefetchJob.attemptsMax)
        #expect(document?.urlsCached == 199 && document?.urlsFailed == 1)
    }

    @Test("An index leads to its sitemaps and no further, and each image is requested once")
    func sitemaps() throws {
        var list = try list(.sitemap("http://a.example/index.xml"))
        let first = list.dequeue(at: Self.start)
        #expect(first.map(\.task) == [.sitemap("http://a.example/index.xml")])
        #expect(list.document("p", at: Self.start)?.state == .reading)
        _ = list.itemFinished(
            first[0],
            try sitemap(
                "<sitemapindex><sitemap><loc>http://a.example/1</loc></sitemap>"
                    + "<sitemap><loc>http://a.example/2</loc></sitemap></sitemapindex>"),
            at: Self.start)
        let second = list.dequeue(at: Self.start)
        #expect(second.map(\.task) == [1, 2].map { .sitemap("http://a.example/\($0)") })
        _ = list.itemFinished(second[0], try sitemap("http://a.example/a.png"), at: Self.start)
        let nested = "<sitemapindex><sitemap><loc>http://a.example/3</loc></sitemap></sitemapindex>"
        _ = list.itemFinished(second[1], try sitemap(nested), at: Self.start)
        let third = list.dequeue(at: Self.start)
        #expect(third.map(\.task) == [.url("http://a.example/a.png")])
        let document = list.itemFinished(third[0], .cached(bodyBytes: 5), at: Self.start)
        #expect(document?.state == .done && document?.urlsTotal == 1 && document?.failures == [])
    }

    @Test("An unreadable sitemap fails the prefetch; one of an index is skipped")
    func unread() throws {
        var list = try list(.sitemap("http://a.example/index.xml"))
        let first = list.dequeue(at: Self.start)
        let failed = list.itemFinished(
            first[0], .failed(reason: "it responded with 404"), at: Self.start)
        #expect(failed?.state == .failed && failed?.failures.count == 1)
        #expect(list.dequeue(at: Self.start).isEmpty)
        _ = try list.start(
            PrefetchRequest(.sitemap("http://a.example/index.xml")), name: "q", at: Self.start)
        let again = list.dequeue(at: Self.start)
        let index = "<sitemapindex><sitemap><loc>http://a.example/1</loc></sitemap></sitemapindex>"
        _ = list.itemFinished(again[0], try sitemap(index), at: Self.start)
        let inner = list.dequeue(at: Self.start)
        let done = list.itemFinished(
            inner[0], .failed(reason: "it responded with 404"), at: Self.start)
        #expect(done?.state == .done && done?.urlsTotal == 0)
        #expect(done?.failures.map(\.reason) == ["it responded with 404", "it lists no images"])
        #expect(done?.sitemapsFailed == 1)
    }

    @Test("A sitemap above the limit is truncated, and that is reported")
    func cut() throws {
        var list = try list(.sitemap("http://a.example/map.txt"))
        let first = list.dequeue(at: Self.start)
        let text = urls(0..<PrefetchRequest.urlsMax + 1).joined(separator: "\n")
        _ = list.itemFinished(first[0], try sitemap(text), at: Self.start)
        let document = try #require(list.document("p", at: Self.start))
        #expect(document.urlsTotal == PrefetchRequest.urlsMax && document.failures.count == 1)
    }

    @Test("A cancelled prefetch requests nothing more; requests in progress are counted")
    func cancel() throws {
        var list = try list(.urls(urls(0..<10)))
        let steps = list.dequeue(at: Self.start)
        let cancelled = list.cancel("p", at: Self.start + .seconds(1))
        #expect(cancelled?.state == .cancelled && cancelled?.elapsedMilliseconds == 1_000)
        #expect(list.dequeue(at: Self.start + .seconds(2)).isEmpty && list.areAllFinished)
        let end = list.itemFinished(steps[0], .cached(bodyBytes: 1), at: Self.start + .seconds(3))
        #expect(end == nil && list.document("p", at: Self.start)?.urlsDone == 1)
        for name in ["p", "other"] { #expect(list.cancel(name, at: Self.start) == nil) }
        _ = try list.start(PrefetchRequest(.urls(urls(0..<1))), name: "q", at: Self.start)
        #expect(list.cancelAll(at: Self.start).map(\.prefetch) == ["q"] && list.areAllFinished)
    }

    @Test("A prefetch cancelled while its sitemap is read stays cancelled")
    func cancelledSitemap() throws {
        for ending in [
            try sitemap("http://a.example/1.png"), .failed(reason: "it responded with 404"),
        ] {
            var list = try list(.sitemap("http://a.example/map.txt"))
            let steps = list.dequeue(at: Self.start)
            _ = list.cancel("p", at: Self.start)
            #expect(list.itemFinished(steps[0], ending, at: Self.start) == nil)
            #expect(list.areAllFinished && list.dequeue(at: Self.start).isEmpty)
            #expect(list.document("p", at: Self.start)?.state == .cancelled)
        }
    }

    @Test("The number of running prefetches is limited, and the latest finished ones are kept")
    func bounds() throws {
        var list = PrefetchJobTable()
        let request = PrefetchRequest(.urls(urls(0..<1)))
        for number in 0..<50 {
            let name = "p\(number)"
            _ = try list.start(request, name: name, at: Self.start)
            if number < PrefetchJobTable.runningMax - 1 { continue }
            #expect(throws: PrefetchJobTable.StartError.tooManyRunning) {
                try list.start(request, name: "more", at: Self.start)
            }
            for step in list.dequeue(at: Self.start) where step.name == name {
                _ = list.itemFinished(step, .cached(bodyBytes: 0), at: Self.start)
            }
        }
        let documents = list.documents(at: Self.start)
        #expect(documents.first?.prefetch == "p49")
        #expect(documents.count { $0.state.isFinished } == PrefetchJobTable.finishedMax)
        #expect(documents.count { !$0.state.isFinished } == PrefetchJobTable.runningMax - 1)
        #expect(ShapeCheck.faults(DocumentList(documents).json, .listPrefetches) == [])
    }
}
