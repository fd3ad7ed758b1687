import Admin
import Foundation
import Ground
import Telemetry
import Testing

@Suite("The conditions of a node follow from facts")
struct ConditionRulesTests {
    private static let url = "http://a.example:80"
    private static let site = "www.example.com"

    /// A node's counters, moved on by a test, and the facts that follow.
    private struct World {
        let loop = EventLoopCounters()
        let node = NodeCounters()
        var history = TrafficHistory()
        var seconds: Int64 = 0
        var requests: UInt64 = 0
        var serverErrors: UInt64 = 0

        private var sample: TrafficSample {
            TrafficSample(
                MetricsSnapshot(loops: [loop], node: node),
                sites: [
                    TrafficSample.SiteCounts(
                        site: ConditionRulesTests.site, requests: requests,
                        serverErrors: serverErrors)
                ], at: .seconds(seconds))
        }

        /// Lets `count` seconds pass, with as many good and bad responses of the site in each.
        mutating func pass(_ count: Int64, good: Int = 0, bad: Int = 0) {
            for _ in 0..<count {
                seconds += 1
                loop.add(.responsesSuccess, good)
                loop.add(.responsesServerError, bad)
                requests += UInt64(good + bad)
                serverErrors += UInt64(bad)
                if history.isDue(at: .seconds(seconds)) { history.record(sample) }
            }
        }

        func facts(_ change: (inout NodeFacts) -> Void = { _ in }) -> NodeFacts {
            var facts = NodeFacts(now: sample)
            facts.history = history
            facts.siteOrigins = [ConditionRulesTests.site: ConditionRulesTests.url]
            change(&facts)
            return facts
        }

        func conditions(_ change: (inout NodeFacts) -> Void = { _ in }) -> [Condition] {
            var log = ConditionLog()
            return log.record(ConditionRules.findings(facts(change)), at: .seconds(seconds))
                .conditions
        }
    }

    /// An origin with `all` requests, of which `bad` went wrong.
    private static func origin(
        all: Int = 0, bad: Int = 0, isOpen: Bool = false, isNamed: Bool = true
    ) -> NodeFacts.Origin {
        var document = OriginDocument()
        document.url = url
        document.circuit = isOpen ? "open" : "closed"
        document.health =
            ConditionRules.health(isCircuitOpen: isOpen, all: all, bad: bad).rawValue
        document.lastError = LastErrorDocument(
            reason: "connect", detail: "Connection refused", millisecondsAgo: 3_400)
        return NodeFacts.Origin(document, isOperatorConfigured: isNamed, all: all, bad: bad)
    }

    private func names(_ conditions: [Condition]) -> [String] { conditions.map(\.name) }

    @Test("A node that serves is ready, also with a few failures")
    func ready() {
        var world = World()
        #expect(world.conditions().isEmpty)
        world.pass(100, good: 10)
        #expect(world.conditions().isEmpty)
        // Nine of eighteen: one client with a broken link causes as many.
        var quiet = World()
        quiet.pass(9, good: 1, bad: 1)
        #expect(quiet.conditions { $0.origins = [Self.origin(all: 9, bad: 9)] }.isEmpty)
        // A hundredth of many.
        world.pass(60, good: 99, bad: 1)
        #expect(world.conditions { $0.origins = [Self.origin(all: 6000, bad: 60)] }.isEmpty)
        #expect(ConditionsDocument(world.conditions()).state == "ready")
    }

    @Test("A considerable share of few requests is reported once a longer window shows it")
    func fewFailures() {
        var world = World()
        for _ in 0..<60 {
            world.pass(1, good: 2, bad: 1)
            world.pass(1, good: 2)
        }
        #expect(names(world.conditions()) == ["site-failing", "server-errors"])
        #expect(ConditionRules.isConclusive(all: 30, bad: 9) == false)
        #expect(ConditionRules.isConclusive(all: 30, bad: 10))
        #expect(ConditionRules.isConclusive(all: 30, bad: 2))
        #expect(ConditionRules.failures(ofSite: 1, world.facts()) == nil, "no such site")
    }

    @Test("A site's dead origin is named within ten seconds, with the share of failed requests")
    func originDown() throws {
        var world = World()
        world.pass(600, good: 10)
        world.pass(9, good: 6, bad: 4)
        let found = world.conditions { $0.origins = [Self.origin(all: 36, bad: 36, isOpen: true)] }
        #expect(names(found) == ["origin-down", "server-errors"])
        let first = try #require(found.first)
        #expect(first.severity == "critical" && first.subject == Self.url)
        #expect(
            first.summary
                == "Origin http://a.example:80 of www.example.com is down: 19 % of the 190 "
                + "requests of the last 19 s got a 5xx response (connect: Connection refused, "
                + "3 s ago).")
        #expect(first.alert == "NuthatchOriginLeftAlone")
        #expect(ConditionsDocument(found).state == "critical")
    }

    @Test("Once an origin is back, its conditions end within twenty seconds")
    func recovered() {
        var world = World()
        world.pass(300, good: 6, bad: 4)
        #expect(world.conditions().first?.name == "site-failing")
        world.pass(20, good: 10)
        #expect(world.conditions { $0.origins = [Self.origin(all: 20)] }.isEmpty)
    }

    @Test("A dead origin without requests is a warning: stored responses are served")
    func idleOrigin() {
        var world = World()
        world.pass(100, good: 10)
        let found = world.conditions { $0.origins = [Self.origin(isOpen: true)] }
        #expect(names(found) == ["origin-down"] && found.first?.severity == "warning")
        #expect(ConditionsDocument(found).state == "warning")
    }

    @Test("An origin that clients name is reported only if it fails a share of all requests")
    func namedByClients() {
        var world = World()
        world.pass(60, good: 10)
        let dead = Self.origin(all: 30, bad: 30, isOpen: true, isNamed: false)
        #expect(world.conditions { $0.origins = [dead] }.isEmpty)
        world.pass(9, good: 6, bad: 4)
        #expect(world.conditions { $0.origins = [dead] }.isEmpty == false)
    }

    @Test("A site with a request every few seconds is judged over five minutes")
    func quietSite() {
        var world = World()
        for _ in 0..<15 { world.pass(19); world.pass(1, bad: 1) }
        let found = world.conditions()
        #expect(found.first?.name == "site-failing" && found.first?.subject == Self.site)
    }

    @Test("An origin of whose requests a tenth fails is failing")
    func failing() {
        #expect(ConditionRules.health(isCircuitOpen: false, all: 100, bad: 9) == .ok)
        #expect(ConditionRules.health(isCircuitOpen: false, all: 101, bad: 10) == .ok)
        #expect(ConditionRules.health(isCircuitOpen: false, all: 100, bad: 10) == .failing)
        #expect(ConditionRules.health(isCircuitOpen: false, all: 10, bad: 10) == .down)
        #expect(ConditionRules.health(isCircuitOpen: true, all: 0, bad: 0) == .down)
        var world = World()
        world.pass(100, good: 10)
        let found = world.conditions { $0.origins = [Self.origin(all: 100, bad: 30)] }
        #expect(names(found) == ["origin-failing"])
        #expect(found.first?.summary.contains("30 of 100 requests") == true)
    }

    @Test("Requests refused by a limit are reported by limit, those by a circuit by its origin")
    func refusing() {
        var world = World()
        world.loop.add(.refusedFetches, 12)
        world.loop.add(.refusedCircuit, 500)
        world.pass(9, good: 10, bad: 0)
        let dead = Self.origin(isOpen: true)
        let found = world.conditions { $0.origins = [dead] }
        #expect(names(found) == ["origin-down", "refusing"] && found.last?.subject == "fills")
        #expect(world.conditions().map(\.subject) == ["fills", "origin_circuit"])
    }

    @Test("A disk that refuses writes is full, and down for another reason")
    func disk() {
        var world = World()
        world.pass(10)
        let full = world.conditions {
            $0.diskFault = .init(why: "write failed: No space left", refusesWrites: true)
        }
        #expect(names(full) == ["disk-full"] && full.first?.severity == "critical")
        #expect(full.first?.summary.hasSuffix("No space left.") == true)
        let down = world.conditions { $0.diskFault = .init(why: "", refusesWrites: false) }
        #expect(names(down) == ["disk-down"])
    }

    @Test("A certificate is reported a month before its end, and becomes critical a week before")
    func certificates() {
        let world = World()
        func condition(daysLeft: Int64, of life: Int64) -> Condition? {
            world.conditions {
                $0.wall = WallTime(seconds: 1_000_000_000)
                let end = 1_000_000_000 + daysLeft * 86_400 + 60
                $0.certificates = [
                    .init(
                        file: "/a.pem", names: ["a.example"],
                        notBefore: WallTime(seconds: end - life * 86_400),
                        notAfter: WallTime(seconds: end))
                ]
            }.first
        }
        #expect(condition(daysLeft: 31, of: 365) == nil)
        #expect(condition(daysLeft: 29, of: 365)?.severity == "warning")
        #expect(condition(daysLeft: 6, of: 365)?.severity == "critical")
        #expect(condition(daysLeft: 6, of: 365)?.subject == "/a.pem")
        let expired = condition(daysLeft: -2, of: 365)
        #expect(expired?.summary == "The certificate of a.example has expired.")
        // Of a file with two issuers, the one that ends first.
        let both = world.conditions { facts in
            facts.wall = WallTime(seconds: 1_000_000_000)
            facts.certificates = [20, 5].map { days in
                .init(
                    file: "/ca.pem", names: ["\(days)"], notBefore: WallTime(seconds: 0),
                    notAfter: WallTime(seconds: 1_000_000_000 + days * 86_400))
            }
        }
        #expect(both.map(\.summary) == ["The certificate of 5 expires in 5 days."])
        // One that lives six days is renewed by a program.
        #expect(condition(daysLeft: 3, of: 6) == nil)
        #expect(condition(daysLeft: 1, of: 6)?.severity == "warning")
    }

    @Test("A condition that must last is shown once it has, and begins anew after its end")
    func delays() {
        var log = ConditionLog()
        let finding = ConditionRules.Finding(
            condition: Condition(.memoryShort, .warning, "It is.", advice: ""), delay: .seconds(60))
        #expect(log.record([finding], at: .seconds(5)).conditions.isEmpty)
        #expect(log.record([finding], at: .seconds(64)).state == "ready")
        let shown = log.record([finding], at: .seconds(65)).conditions
        #expect(shown.map(\.sinceMilliseconds) == [60_000])
        #expect(log.record([], at: .seconds(70)).conditions.isEmpty)
        #expect(log.record([finding], at: .seconds(140)).conditions.isEmpty)
        // Two threads evaluate at once, and the later one began earlier.
        let atOnce = ConditionRules.Finding(
            condition: Condition(.memoryShort, .warning, "It is.", advice: ""))
        #expect(log.record([atOnce], at: .seconds(139)).conditions.count == 1)
    }

    @Test("A node is fenced, joining or draining in words, the worst first")
    func states() {
        var world = World()
        world.pass(40)
        let found = world.conditions {
            $0.fenced = .seconds(12)
            $0.missingSeeds = ["b:1: no route"]
            $0.readiness = .ready
        }
        #expect(names(found) == ["fenced", "joining"])
        #expect(found.first?.summary.contains("12 s") == true)
        #expect(found.last?.summary.contains("b:1: no route") == true)
        #expect(names(world.conditions { $0.readiness = .draining }) == ["draining"])
    }

    // MARK: Names

    private static let repository = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.repository.appending(path: path), encoding: .utf8)
    }

    @Test("Every alert that a condition names exists")
    func alerts() throws {
        let rules = try text("deploy/grafana/rules.yaml")
        let sources = try FileManager.default.contentsOfDirectory(
            at: Self.repository.appending(path: "Sources/Admin/Conditions"),
            includingPropertiesForKeys: nil)
        let code = try sources.map { try String(contentsOf: $0, encoding: .utf8) }.joined()
        let named = Set(code.matches(of: /"(Nuthatch[A-Za-z]+)"/).map { String($0.1) })
        #expect(named.count > 10)
        for alert in named { #expect(rules.contains("- alert: \(alert)\n"), "\(alert)") }
    }

    @Test("The guide lists every condition by its name")
    func guide() throws {
        let page = try text("Sources/nuthatch/nuthatch.docc/Operating.md")
        let section = page.components(separatedBy: "## What the state means").last?
            .components(separatedBy: "\n## ").first
        let listed = section?.matches(of: /(?m)^\| `([a-z-]+)` \|/).map { String($0.1) }
        #expect(Set(listed ?? []) == Set(Condition.Name.allCases.map(\.rawValue)))
    }
}
