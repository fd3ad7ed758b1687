import Ground
import Serving
import Testing

private typealias Effect = OwnerSearch.Effect
private typealias Reply = OwnerSearch.Reply

private func node(_ number: UInt64) -> NodeID { NodeID(low: number, high: 0) }

private let me = node(100)
private let (first, second, third, fourth) = (node(1), node(2), node(3), node(4))

/// A search with one method for each event, which returns the effects.
private struct Story {
    var search: OwnerSearch
    private(set) var now = Instant.zero

    init(_ preference: [NodeID], unreachable: [NodeID] = [], lookback: Int = 3) {
        search = OwnerSearch(
            me: me,
            preference: preference.map { .init($0, isReachable: !unreachable.contains($0)) },
            lookback: lookback)
    }

    mutating func begun() -> [Effect] {
        var effects: [Effect] = []
        search.started(now, effects: &effects)
        return effects
    }

    mutating func reply(_ node: NodeID, _ reply: Reply) -> [Effect] {
        var effects: [Effect] = []
        search.replied(node, reply, now, effects: &effects)
        return effects
    }

    mutating func lost(_ node: NodeID) -> [Effect] {
        var effects: [Effect] = []
        search.lost(node, now, effects: &effects)
        return effects
    }

    mutating func becomeOwner() -> [Effect] {
        var effects: [Effect] = []
        search.becameOwner(now, effects: &effects)
        return effects
    }

    /// Advances the clock and ticks the search.
    mutating func pass(_ milliseconds: Int64) -> [Effect] {
        now = now + .milliseconds(milliseconds)
        var effects: [Effect] = []
        search.ticked(now, effects: &effects)
        return effects
    }
}

@Suite("The search for an owner's copy of an image")
struct OwnerSearchTests {
    @Test("A node without peers fetches from the origin at once")
    func alone() {
        for preference in [[], [me]] {
            var story = Story(preference)
            #expect(story.begun() == [.fetchFromOrigin])
            #expect(story.search.isFinished)
            #expect(story.search.deadline == nil)
        }
    }

    @Test("The first owner is queried, and its response is accepted")
    func held() {
        var story = Story([first, second, me])
        #expect(story.begun() == [.sendQuery(first, .get)])
        #expect(story.reply(first, .found) == [.acceptResponse(first)])
        #expect(story.reply(first, .found) == [])
    }

    @Test("An owner that reports a fetch in progress is awaited, however long it takes")
    func fetching() {
        var story = Story([first, second])
        _ = story.begun()
        for _ in 0..<400 {
            #expect(story.pass(250) == [])
            #expect(story.reply(first, .fetching) == [])
        }
        #expect(story.reply(first, .found) == [.acceptResponse(first)])
    }

    @Test(
        "If the owner cannot respond, the image is fetched from the origin",
        arguments: [OwnerSearch.Reply.declined, .lagging, .notFound, .originFailed])
    func given(reply: OwnerSearch.Reply) {
        var story = Story([first, second])
        _ = story.begun()
        #expect(story.reply(first, reply) == [.fetchFromOrigin])
    }

    @Test("An origin's error response is accepted from the owner as it is")
    func refused() {
        var story = Story([first])
        _ = story.begun()
        #expect(story.reply(first, .originErrorResponse) == [.acceptResponse(first)])
    }

    @Test("When the first owner is silent, the next is probed once, without starting a fetch")
    func silence() {
        var story = Story([first, second, third])
        _ = story.begun()
        #expect(story.pass(599) == [])
        #expect(story.pass(1) == [.sendQuery(second, .probe)])
        #expect(story.reply(second, .notFound) == [])
        #expect(story.pass(2_000) == [])
        #expect(story.reply(first, .fetching) == [])
        #expect(story.reply(first, .found) == [.acceptResponse(first)])
    }

    @Test("A response of the probed owner is accepted, and the silent one is cancelled")
    func probed() {
        var story = Story([first, me, second])
        _ = story.begun()
        #expect(story.pass(600) == [.sendQuery(second, .probe)])
        #expect(story.reply(second, .fetching) == [])
        #expect(story.reply(second, .found) == [.cancelQuery(first), .acceptResponse(second)])
    }

    @Test("An owner that is lost or silent for too long is replaced with a get to the next")
    func passedOver() {
        var lost = Story([first, second])
        _ = lost.begun()
        #expect(lost.lost(first) == [.cancelQuery(first), .sendQuery(second, .get)])
        #expect(lost.reply(second, .found) == [.acceptResponse(second)])

        var silent = Story([first, second])
        _ = silent.begun()
        #expect(silent.pass(600) == [.sendQuery(second, .probe)])
        #expect(
            silent.pass(2_400) == [
                .cancelQuery(first), .cancelQuery(second), .sendQuery(second, .get),
            ])
    }

    @Test("Unreachable owners are skipped; after three this node acts as the owner")
    func bounded() {
        var one = Story([first, second, third], unreachable: [first])
        #expect(one.begun() == [.sendQuery(second, .get)])
        var two = Story([first, second, third], unreachable: [first, second])
        #expect(two.begun() == [.sendQuery(third, .get)])
        var three = Story([first, second, third, fourth], unreachable: [first, second, third])
        #expect(three.begun() == [.sendQuery(fourth, .probe)])

        // Those that fall silent count like those that are not reached.
        var silent = Story([first, second, third, fourth], unreachable: [first], lookback: 1)
        #expect(silent.begun() == [.sendQuery(second, .get)])
        #expect(silent.lost(second) == [.cancelQuery(second), .sendQuery(third, .get)])
        #expect(silent.lost(third) == [.cancelQuery(third), .sendQuery(fourth, .probe)])
        #expect(OwnerSearch.skippedOwnersMax == 3)
    }

    @Test("The owner probes the nodes after it together and briefly, then fetches from the origin")
    func lookback() {
        var story = Story([me, first, second, third, fourth])
        let probes = [first, second, third].map { Effect.sendQuery($0, .probe) }
        #expect(story.begun() == probes)
        #expect(story.reply(second, .notFound) == [])
        #expect(story.pass(249) == [])
        #expect(story.pass(1) == [.cancelQuery(first), .cancelQuery(third), .fetchFromOrigin])
    }

    @Test("When no node has it, the owner does not wait for the timeout")
    func nobody() {
        var story = Story([me, first, second], lookback: 2)
        _ = story.begun()
        #expect(story.reply(first, .notFound) == [])
        #expect(story.lost(second) == [.cancelQuery(second), .fetchFromOrigin])
    }

    @Test("A former owner's copy is accepted by the new owner")
    func formerOwner() {
        var story = Story([me, first, second])
        _ = story.begun()
        #expect(story.reply(second, .found) == [.cancelQuery(first), .acceptResponse(second)])
    }

    @Test("A fetch in progress at a former owner is awaited, and no second one started")
    func formerFetch() {
        var story = Story([me, first, second, third])
        _ = story.begun()
        #expect(story.reply(first, .fetching) == [])
        #expect(story.reply(second, .fetching) == [.cancelQuery(second)])
        #expect(story.pass(250) == [.cancelQuery(third)])
        #expect(story.pass(300) == [])
        #expect(story.reply(first, .fetching) == [])
        #expect(story.pass(500) == [])
        #expect(story.reply(first, .found) == [.acceptResponse(first)])

        var lost = Story([me, first])
        _ = lost.begun()
        _ = lost.reply(first, .fetching)
        #expect(lost.lost(first) == [.cancelQuery(first), .fetchFromOrigin])

        var silent = Story([me, first])
        _ = silent.begun()
        _ = silent.reply(first, .fetching)
        #expect(silent.pass(600) == [.cancelQuery(first), .fetchFromOrigin])
    }

    @Test("With a peer waiting, the node acts as the owner and waits for no peer's peer")
    func becameOwner() {
        var story = Story([first, me, second], lookback: 2)
        _ = story.begun()
        _ = story.pass(600)
        #expect(
            story.becomeOwner() == [
                .cancelQuery(first), .cancelQuery(second), .sendQuery(first, .probe),
                .sendQuery(second, .probe),
            ])
        #expect(story.becomeOwner() == [])
        #expect(story.reply(first, .fetching) == [])
        #expect(story.reply(second, .notFound) == [])
        #expect(story.reply(first, .found) == [.acceptResponse(first)])

        var asked = Story([first, second], lookback: 1)
        var effects: [OwnerSearch.Effect] = []
        asked.search.startedAsOwner(.zero, effects: &effects)
        #expect(effects == [.sendQuery(first, .probe)])
    }

    @Test("Cancelling a search cancels all its queries")
    func cancelled() {
        var story = Story([first, second])
        _ = story.begun()
        _ = story.pass(600)
        var effects: [Effect] = []
        story.search.cancelled(effects: &effects)
        #expect(effects == [.cancelQuery(first), .cancelQuery(second)])
        #expect(story.reply(first, .found) == [])
    }
}

@Suite("Invariants of the search under any behaviour of peers")
struct OwnerSearchLawTests {
    private static let replies: [Reply] = [
        .found, .fetching, .notFound, .declined, .lagging, .originFailed, .originErrorResponse,
    ]

    @Test("A search ends once, queries each node once at a time, and leaves no query open")
    func laws() {
        for seed in 0..<2_000 as Range<UInt64> {
            var dice = SplitMix64(seed: seed)
            let nodes = (1...6).map { node(UInt64($0)) } + [me]
            let preference = Array(
                nodes.shuffled(using: &dice).prefix(Int.random(in: 0...7, using: &dice)))
            let away = preference.filter { _ in
                Bool.random(using: &dice) && Bool.random(using: &dice)
            }
            var story = Story(preference, unreachable: away)
            var open: Set<NodeID> = []
            var gets = 0
            var ends = 0
            func run(_ effects: [Effect]) {
                for effect in effects {
                    #expect(ends == 0, "seed \(seed)")
                    switch effect {
                    case .sendQuery(let node, let question):
                        #expect(node != me && open.insert(node).inserted, "seed \(seed)")
                        if question == .get { gets += 1 }
                    case .cancelQuery(let node): open.remove(node)
                    case .acceptResponse(let node):
                        #expect(open == [node], "seed \(seed)")
                        ends += 1
                    case .fetchFromOrigin: ends += 1
                    }
                }
            }
            run(story.begun())
            var steps = 0
            while !story.search.isFinished {
                steps += 1
                let node = nodes.randomElement(using: &dice) ?? me
                switch Int.random(in: 0..<4, using: &dice) {
                case 0:
                    // All peers fall silent in the end; otherwise the search could wait for ever.
                    guard steps < 50 else { continue }
                    let reply = Self.replies.randomElement(using: &dice) ?? .notFound
                    if open.contains(node), reply != .found, reply != .fetching {
                        run(story.reply(node, reply))
                        open.remove(node)
                    } else {
                        run(story.reply(node, reply))
                    }
                case 1 where steps < 50: run(story.lost(node))
                default: run(story.pass(Int64.random(in: 0...700, using: &dice)))
                }
            }
            #expect(ends == 1 && gets <= OwnerSearch.skippedOwnersMax, "seed \(seed)")
        }
    }
}
