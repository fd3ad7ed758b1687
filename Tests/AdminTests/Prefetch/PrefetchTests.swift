import Admin
import Ground
import Testing

@Suite("Prefetches")
struct PrefetchTests {
    private static let start = Instant.zero + .seconds(100)

    private func urls(_ range: Range<Int>) -> [String] { range.map { "http://a.example/\($0)" } }

    private func list(
        _ source: PrefetchRequest.Source
    ) throws -> PrefetchList {
        var list = PrefetchList()
        _ = try list.begin(PrefetchRequest(source), name: "p", at: Self.start)
        return list
    }

    private func sitemap(_ text: String) throws -> Prefetch.Ending {
        .sitemap(try Sitemap(Array(text.utf8), imagesMax: PrefetchRequest.urlsMax))
    }

    @Test("every URL is asked for once, some at a time, and what came of it is counted")
    func whole() throws {
        var list = try list(.urls(urls(0..<10)))
        var asked: [Prefetch.Task] = []
        var under: [PrefetchList.Step] = []
        var now = Self.start
        var last: PrefetchDocument?
        while !list.isIdle {
            under += list.take(at: now)
            #expect(under.count <= Prefetch.runningMax && !under.isEmpty)
            now = now + .milliseconds(10)
            let step = under.removeFirst()
            asked.append(step.task)
            let ending: Prefetch.Ending =
                switch asked.count % 3 {
                case 0: .held(bodyBytes: 1)
                case 1: .fetched(bodyBytes: 10)
                default: .failed(why: "it answered 404")
                }
            if let document = list.ended(step, ending, at: now) { last = document }
        }
        #expect(asked == urls(0..<10).map(Prefetch.Task.url))
        let document = try #require(last)
        #expect(document.state == .done && document.urlsTotal == 10 && document.urlsDone == 10)
        #expect(document.urlsHeld == 3 && document.urlsFetched == 4 && document.urlsFailed == 3)
        #expect(document.bodyBytes == 43 && document.runningMilliseconds == 100)
        #expect(document.faults.map(\.url) == [1, 4, 7].map { "http://a.example/\($0)" })
        #expect(list.document("p", at: now + .seconds(9)) == document)
        #expect(ShapeCheck.faults(document.json, .getPrefetch) == [])
    }

    @Test("a node that is busy is left alone for as long as it says, and then asked again")
    func busy() throws {
        var list = try list(.urls(urls(0..<1)))
        var now = Self.start
        // Three seconds are what it says; it is not believed for ever.
        let pauses: [Int64] = [3, 3, 4, 8, 16, 30]
        for (attempt, pause) in zip(1...PrefetchDelays.faultsMax, pauses) {
            let step = try #require(list.take(at: now).first, "attempt \(attempt)")
            let document = list.ended(
                step, .busy(why: "it answered 503", retryAfter: .seconds(3)), at: now)
            #expect((document != nil) == (attempt == PrefetchDelays.faultsMax))
            #expect(list.take(at: now + .milliseconds(pause * 1_000 - 1)).isEmpty)
            now = now + .seconds(pause)
        }
        let document = try #require(list.document("p", at: now))
        #expect(document.state == .done && document.urlsFailed == 1)
        #expect(document.faults == [.init(url: urls(0..<1)[0], why: "it answered 503")])
    }

    @Test("a pause is at least one and at most half a minute, whatever the node says")
    func pauses() throws {
        for (said, pause) in [
            (nil, PrefetchDelays.pause), (.zero, PrefetchDelays.pause),
            (.seconds(3_600), PrefetchDelays.pauseMax),
        ] as [(Interval?, Interval)] {
            var list = try list(.urls(urls(0..<1)))
            let step = try #require(list.take(at: Self.start).first)
            _ = list.ended(step, .busy(why: "", retryAfter: said), at: Self.start)
            #expect(list.take(at: Self.start + pause - .milliseconds(1)).isEmpty)
            #expect(list.take(at: Self.start + pause) == [step])
        }
    }

    @Test("a host that is busy does not hold up another; what waits for it is asked later")
    func hosts() throws {
        let mixed = (0..<6).flatMap { ["http://dead.example/\($0)", "http://a.example/\($0)"] }
        var list = try list(.urls(mixed))
        var asked: [String] = []
        while true {
            let steps = list.take(at: Self.start)
            if steps.isEmpty { break }
            for step in steps {
                guard case .url(let url) = step.task else { continue }
                asked.append(url)
                let isDead = url.contains("dead")
                _ = list.ended(
                    step, isDead ? .busy(why: "503", retryAfter: nil) : .held(bodyBytes: 1),
                    at: Self.start)
            }
        }
        #expect(asked.filter { $0.contains("a.example") }.count == 6)
        // Those that were under way together.
        #expect(asked.filter { $0.contains("dead") }.count == 2)
        let later = list.take(at: Self.start + PrefetchDelays.pause)
        #expect(later.count == Prefetch.runningMax)
        for step in later { _ = list.ended(step, .held(bodyBytes: 1), at: Self.start) }
        for step in list.take(at: Self.start + PrefetchDelays.pause) {
            _ = list.ended(step, .held(bodyBytes: 1), at: Self.start)
        }
        let document = list.document("p", at: Self.start)
        #expect(document?.state == .done && document?.urlsHeld == 12)
    }

    @Test(
        "a host that only fails is given up, and with it all that was to be asked of it",
        arguments: [
            [Prefetch.Ending.busy(why: "no connection", retryAfter: nil)],
            [
                .busy(why: "no connection", retryAfter: .seconds(50)),
                .failed(why: "it answered 500", hasAnswered: false),
                .busy(why: "no connection", retryAfter: nil, isOfHost: false),
            ],
        ])
    func givenUp(endings: [Prefetch.Ending]) throws {
        var list = try list(.urls(urls(0..<5_000)))
        var now = Self.start
        var asked = 0
        var end: PrefetchDocument?
        while !list.isIdle {
            let steps = list.take(at: now)
            #expect(!steps.isEmpty && end == nil)
            for step in steps {
                end = list.ended(step, endings[asked % endings.count], at: now) ?? end
                asked += 1
            }
            now = now + PrefetchDelays.pauseMax
        }
        #expect(asked <= 3 * PrefetchDelays.faultsMax * Prefetch.runningMax)
        #expect(now - Self.start >= .seconds(30))
        #expect(end?.state == .done && end?.urlsFailed == 5_000 && end?.urlsDone == 5_000)
    }

    @Test("however fast a host fails, it is asked for half a minute before it is given up")
    func patience() throws {
        var list = try list(.urls(urls(0..<5_000)))
        var now = Self.start
        while !list.isIdle {
            for step in list.take(at: now) {
                _ = list.ended(step, .busy(why: "refused", retryAfter: nil), at: now)
            }
            now = now + .milliseconds(100)
        }
        #expect(now - Self.start >= .seconds(30) && now - Self.start < .seconds(40))
        let document = list.document("p", at: now)
        #expect(document?.urlsFailed == 5_000 && document?.faults.last?.why == "refused")
    }

    @Test("an overloaded node is waited for longer, and not for ever")
    func overloaded() throws {
        var list = try list(.urls(urls(0..<5_000)))
        var now = Self.start
        while !list.isIdle {
            for step in list.take(at: now) {
                let busy = Prefetch.Ending.busy(
                    why: "overloaded", retryAfter: nil, isOfHost: false)
                _ = list.ended(step, busy, at: now)
            }
            now = now + .seconds(1)
        }
        #expect(now - Self.start > .seconds(300) && now - Self.start < .seconds(900))
        #expect(list.document("p", at: now)?.urlsFailed == 5_000)
    }

    @Test("what was asked before a pause prolongs it, and counts once with what began it")
    func late() throws {
        var list = try list(.urls(urls(0..<4)))
        let steps = list.take(at: Self.start)
        let busy = Prefetch.Ending.busy(why: "503", retryAfter: nil)
        _ = list.ended(steps[0], busy, at: Self.start)
        _ = list.ended(steps[1], .held(bodyBytes: 1), at: Self.start)
        _ = list.ended(steps[2], busy, at: Self.start)
        // Long after the pause has ended, of one that was asked before it.
        let later = Self.start + .seconds(20)
        _ = list.ended(steps[3], busy, at: later)
        #expect(list.take(at: later + PrefetchDelays.pause - .milliseconds(1)).isEmpty)
        #expect(list.take(at: later + PrefetchDelays.pause).count == 3)
    }

    @Test("one URL that is busy for ever fails alone, while others of its host come")
    func one() throws {
        var list = try list(.urls(urls(0..<200)))
        var now = Self.start
        var attempts = 0
        while !list.isIdle {
            for step in list.take(at: now) {
                let isBusy = step.task == .url(urls(0..<1)[0])
                if isBusy { attempts += 1 }
                _ = list.ended(
                    step, isBusy ? .busy(why: "503", retryAfter: nil) : .held(bodyBytes: 1),
                    at: now)
            }
            now = now + .seconds(1)
        }
        let document = list.document("p", at: now)
        #expect(attempts == Prefetch.attemptsMax)
        #expect(document?.urlsHeld == 199 && document?.urlsFailed == 1)
    }

    @Test("an index leads to its sitemaps and no further, and each image is asked for once")
    func sitemaps() throws {
        var list = try list(.sitemap("http://a.example/index.xml"))
        let first = list.take(at: Self.start)
        #expect(first.map(\.task) == [.sitemap("http://a.example/index.xml")])
        #expect(list.document("p", at: Self.start)?.state == .reading)
        _ = list.ended(
            first[0],
            try sitemap(
                "<sitemapindex><sitemap><loc>http://a.example/1</loc></sitemap>"
                    + "<sitemap><loc>http://a.example/2</loc></sitemap></sitemapindex>"),
            at: Self.start)
        let second = list.take(at: Self.start)
        #expect(second.map(\.task) == [1, 2].map { .sitemap("http://a.example/\($0)") })
        _ = list.ended(second[0], try sitemap("http://a.example/a.png"), at: Self.start)
        let nested = "<sitemapindex><sitemap><loc>http://a.example/3</loc></sitemap></sitemapindex>"
        _ = list.ended(second[1], try sitemap(nested), at: Self.start)
        let third = list.take(at: Self.start)
        #expect(third.map(\.task) == [.url("http://a.example/a.png")])
        let document = list.ended(third[0], .held(bodyBytes: 5), at: Self.start)
        #expect(document?.state == .done && document?.urlsTotal == 1 && document?.faults == [])
    }

    @Test("a sitemap that cannot be read fails it; one of an index is left out")
    func unread() throws {
        var list = try list(.sitemap("http://a.example/index.xml"))
        let first = list.take(at: Self.start)
        let failed = list.ended(first[0], .failed(why: "it answered 404"), at: Self.start)
        #expect(failed?.state == .failed && failed?.faults.count == 1)
        #expect(list.take(at: Self.start).isEmpty)
        _ = try list.begin(
            PrefetchRequest(.sitemap("http://a.example/index.xml")), name: "q", at: Self.start)
        let again = list.take(at: Self.start)
        let index = "<sitemapindex><sitemap><loc>http://a.example/1</loc></sitemap></sitemapindex>"
        _ = list.ended(again[0], try sitemap(index), at: Self.start)
        let inner = list.take(at: Self.start)
        let done = list.ended(inner[0], .failed(why: "it answered 404"), at: Self.start)
        #expect(done?.state == .done && done?.urlsTotal == 0)
        #expect(done?.faults.map(\.why) == ["it answered 404", "it names no image"])
        #expect(done?.sitemapsFailed == 1)
    }

    @Test("a sitemap that names too much is cut, and that is said")
    func cut() throws {
        var list = try list(.sitemap("http://a.example/map.txt"))
        let first = list.take(at: Self.start)
        let text = urls(0..<PrefetchRequest.urlsMax + 1).joined(separator: "\n")
        _ = list.ended(first[0], try sitemap(text), at: Self.start)
        let document = try #require(list.document("p", at: Self.start))
        #expect(document.urlsTotal == PrefetchRequest.urlsMax && document.faults.count == 1)
    }

    @Test("a prefetch that is cancelled asks for nothing more; what is under way is counted")
    func cancel() throws {
        var list = try list(.urls(urls(0..<10)))
        let steps = list.take(at: Self.start)
        let cancelled = list.cancel("p", at: Self.start + .seconds(1))
        #expect(cancelled?.state == .cancelled && cancelled?.runningMilliseconds == 1_000)
        #expect(list.take(at: Self.start + .seconds(2)).isEmpty && list.isIdle)
        let end = list.ended(steps[0], .held(bodyBytes: 1), at: Self.start + .seconds(3))
        #expect(end == nil && list.document("p", at: Self.start)?.urlsDone == 1)
        for name in ["p", "other"] { #expect(list.cancel(name, at: Self.start) == nil) }
        _ = try list.begin(PrefetchRequest(.urls(urls(0..<1))), name: "q", at: Self.start)
        #expect(list.cancelAll(at: Self.start).map(\.prefetch) == ["q"] && list.isIdle)
    }

    @Test("one that is cancelled while its sitemap is read stays so, whatever the sitemap says")
    func cancelledSitemap() throws {
        for ending in [try sitemap("http://a.example/1.png"), .failed(why: "it answered 404")] {
            var list = try list(.sitemap("http://a.example/map.txt"))
            let steps = list.take(at: Self.start)
            _ = list.cancel("p", at: Self.start)
            #expect(list.ended(steps[0], ending, at: Self.start) == nil)
            #expect(list.isIdle && list.take(at: Self.start).isEmpty)
            #expect(list.document("p", at: Self.start)?.state == .cancelled)
        }
    }

    @Test("only so many run at once, and the last that are over are still shown")
    func bounds() throws {
        var list = PrefetchList()
        let request = PrefetchRequest(.urls(urls(0..<1)))
        for number in 0..<50 {
            let name = "p\(number)"
            _ = try list.begin(request, name: name, at: Self.start)
            if number < PrefetchList.runningMax - 1 { continue }
            #expect(throws: PrefetchList.Refusal.tooMany) {
                try list.begin(request, name: "more", at: Self.start)
            }
            for step in list.take(at: Self.start) where step.name == name {
                _ = list.ended(step, .held(bodyBytes: 0), at: Self.start)
            }
        }
        let documents = list.documents(at: Self.start)
        #expect(documents.first?.prefetch == "p49")
        #expect(documents.count { $0.state.isOver } == PrefetchList.keptMax)
        #expect(documents.count { !$0.state.isOver } == PrefetchList.runningMax - 1)
        #expect(ShapeCheck.faults(PrefetchDocument.json(documents), .listPrefetches) == [])
    }
}
