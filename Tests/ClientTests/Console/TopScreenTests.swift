import Admin
import Client
import Foundation
import Ground
import Testing

@Suite("The screen of nuthatch top")
struct TopScreenTests {
    private static func time(_ seconds: Double) -> Instant {
        Instant(nanoseconds: Int64(seconds * 1e9))
    }

    /// Five nodes after 20 s of traffic: the fourth is dead, the fifth fenced.
    private func cluster() -> TopState {
        var state = TopState(
            places: (1...5).map { "127.0.0.1:808\($0)" }, interval: .seconds(1))
        for second in 0...20 {
            for node in 0..<5 where node != 3 || second < 12 {
                let isCut = node == 4 && second > 12
                let members = (1...5).map { digit in
                    let isAway = (digit == 4 && second > 14) || (isCut && digit != 5)
                    return Reports.member(
                        digit, isAway ? "dead" : "alive", isSelf: digit == node + 1,
                        lag: digit == 5 && second > 14 ? 3 : 0)
                }
                let rate = UInt64(400 * (node + 1) + second * 10)
                let report = Reports.statistics(
                    at: Int64(second) * 1000, hits: rate * UInt64(second),
                    misses: UInt64(second * node), members: members,
                    fenced: isCut && second > 16 ? Int64(second - 16) * 1000 : nil,
                    pending: node == 0 ? 1 : 0)
                state.received(node, report, at: Self.time(Double(second)))
            }
            if second >= 12 {
                state.requestFailed(3, "Connection refused", at: Self.time(Double(second)))
            }
        }
        state.received(
            0,
            Reports.hot([
                ("http://origin.example/photos/nuthatch.jpg", 48_000),
                ("http://origin.example/photos/tree-creeper.jpg", 12_500),
                (
                    "http://origin.example/a/very/long/path/that/no/terminal/of/80/columns/has.jpg",
                    9
                ),
            ]))
        state.received(1, Reports.hot([("http://origin.example/photos/nuthatch.jpg", 2_000)]))
        state.received(
            0,
            [
                Reports.receipt(2, held: 9_000, confirmed: 3, of: 5, tag: "product-17"),
                Reports.receipt(
                    1, held: 130_000, confirmed: 5, of: 5, url: "//origin.example/photo.jpg"),
            ])
        return state
    }

    /// Compares a screen with its file, which should be read before it is renewed: it is what
    /// people see.
    private func expect(
        _ state: TopState, _ columns: Int, _ rows: Int?, is name: String, at second: Double = 20,
        location: SourceLocation = #_sourceLocation
    ) throws {
        let lines = state.render(columns: columns, rows: rows, now: Self.time(20))
        let text = lines.map { $0.rendered(isColoured: false) + "\n" }.joined()
        if let folder = ProcessInfo.processInfo.environment["RENEW_SCREENS"] {
            try Data(text.utf8).write(to: URL(filePath: folder).appending(path: "\(name).txt"))
        }
        let file = try #require(
            Bundle.module.url(forResource: name, withExtension: "txt", subdirectory: "Screens"))
        let wanted = try String(contentsOf: file, encoding: .utf8)
        #expect(text == wanted, "\n\(text)", sourceLocation: location)
    }

    @Test("The screen fits a terminal of 80 columns and 24 lines")
    func small() throws {
        try expect(cluster(), 80, 24, is: "top-80x24")
    }

    @Test("On a terminal of 140 columns and 40 lines the screen shows more")
    func large() throws {
        try expect(cluster(), 140, 40, is: "top-140x40")
    }

    @Test("A single node with its images and purges; help; and output without a terminal")
    func others() throws {
        var state = cluster()
        for _ in 0..<5 { _ = state.keyPressed(.next) }
        #expect(state.selection == 4)
        try expect(state, 80, 24, is: "top-fenced-node")
        _ = state.keyPressed(.previous)
        try expect(state, 80, 24, is: "top-dead-node")
        _ = state.keyPressed(.help)
        try expect(state, 80, 32, is: "top-help")
        _ = state.keyPressed(.escape)
        #expect(!state.showsHelp && state.selection == 3)
        _ = state.keyPressed(.escape)
        #expect(state.selection == nil)
        try expect(state, 100, nil, is: "top-once")
    }

    /// The cluster in which an origin is down, with names that are long, and rates that are high.
    private func failing() -> TopState {
        var state = TopState(
            places: ["10.100.200.101:18081", "node-b:8081"], interval: .seconds(1))
        for second in 0...9 {
            for node in 0..<2 {
                var members = [Reports.member(1), Reports.member(2)]
                for index in members.indices {
                    members[index].isSelf = index == node
                    members[index].name = "nuthatch-\(index)"
                    var summary = MemberDocument.Summary()
                    (summary.requests, summary.hits, summary.cacheable) = (7_000, 6_500, 6_900)
                    (summary.originFetches, summary.originFailed) = (400, 12)
                    (summary.state, summary.condition) = ("critical", Reports.conditions[0].summary)
                    if index == 0 { members[index].summary = summary }
                    members[index].adminURL = "http://nuthatch-\(index).nuthatch.svc:8081"
                }
                members[1].differingSettings = ["disk-limit"]
                let count = UInt64(123_456 * second)
                var report = Reports.statistics(
                    at: Int64(second) * 1000, hits: count, misses: count / 10, members: members)
                (report.responses.successful, report.responses.serverErrors) = (count, count / 100)
                report.responses.clientErrors = count / 1000
                report.errors.refused = NamedCounts([("fills", count / 500)])
                report.errors.origin = NamedCounts([("connect", count / 100), ("timeout", 0)])
                state.received(node, report, at: Self.time(Double(second)))
            }
        }
        state.received(0, ConditionsDocument(Reports.conditions))
        state.received(1, ConditionsDocument(Array(Reports.conditions.prefix(1))))
        for node in 0..<2 {
            state.received(node, Reports.origins)
            state.received(node, Reports.sites)
            state.received(node, Reports.certificates)
        }
        return state
    }

    @Test(
        "What is wrong comes first at 80, 100 and 120 columns, and the table has no gap",
        arguments: [80, 100, 120])
    func failing(columns: Int) throws {
        var state = failing()
        try expect(state, columns, 24, is: "top-failing-\(columns)x24", at: 9)
        for view in TopState.View.allCases {
            #expect(state.view == view)
            let lines = state.render(columns: columns, rows: 24, now: Self.time(9))
            #expect(lines.count == 24 && lines.allSatisfy { $0.columns <= columns })
            #expect(lines[0].text.hasPrefix("critical: http://a.example:80 is down:"))
            let keys = ["q", "v", "n", "s", "p", "?"]
            #expect(keys.allSatisfy { lines[23].text.contains(" \($0)  ") }, "\(lines[23].text)")
            #expect(lines[23].text.hasSuffix("help"))
            _ = state.keyPressed(.nextView)
        }
        // The columns of a row are separate words below their headings.
        let lines = state.render(columns: columns, rows: 24, now: Self.time(9)).map(\.text)
        let heads = try #require(lines.firstIndex { $0.hasPrefix("NODE") })
        let words = lines[heads].split(separator: " ").count
        #expect(lines[heads + 1].split(separator: " ").count >= words)
        #expect(lines[heads].contains("5XX") && lines[heads].contains("HIT"))
        #expect(lines[heads + 1].hasPrefix("nuthatch-0 ") && lines[heads + 1].contains("critical"))
    }

    @Test("The views show conditions with advice, origins, sites, members and certificates")
    func views() throws {
        var state = failing()
        for view in TopState.View.allCases.dropFirst() {
            _ = state.keyPressed(.nextView)
            try expect(state, 80, 16, is: "top-\(view.rawValue)-80x16", at: 9)
        }
        _ = state.keyPressed(.escape)
        #expect(state.view == .overview)
    }

    @Test("At any size the screen has the terminal's lines and none is too wide", arguments: 0...3)
    func sizes(presses: Int) throws {
        var state = presses == 3 ? failing() : cluster()
        for _ in 0..<presses { _ = state.keyPressed(.next) }
        for columns in [1, 7, 20, 40, 79, 81, 119, 121, 200, 400] {
            for rows in [0, 1, 2, 5, 9, 13, 16, 23, 60, 200] {
                let lines = state.render(columns: columns, rows: rows, now: Self.time(20))
                #expect(lines.count == rows && lines.allSatisfy { $0.columns <= columns })
            }
        }
    }

    @Test("Nodes are sorted by requests, those without figures last")
    func sorted() throws {
        var state = cluster()
        func names() -> [String] {
            let lines = state.render(columns: 80, rows: 24, now: Self.time(20)).map(\.text)
            let heads = lines.firstIndex { $0.hasPrefix("NODE") } ?? 0
            return lines[(heads + 1)..<(heads + 6)].map { String($0.prefix(1)) }
        }
        #expect(names() == ["1", "2", "3", "4", "5"])
        _ = state.keyPressed(.sort)
        #expect(state.order == .requests)
        #expect(names() == ["5", "3", "2", "1", "4"])
        _ = state.keyPressed(.sort)
        #expect(state.order == .hits)
        #expect(names() == ["5", "3", "2", "1", "4"])
        for _ in 0..<4 { _ = state.keyPressed(.sort) }
        #expect(state.order == .asListed)
    }

    @Test("A node that never answered is the member that matches no other")
    func neverHeard() throws {
        var state = TopState(places: ["10.0.0.1:8081", "10.0.0.2:8081"], interval: .seconds(1))
        let members = [Reports.member(1, isSelf: true), Reports.member(2, "dead")]
        for second in 0...1 {
            let report = Reports.statistics(at: Int64(second) * 1000, members: members)
            state.received(0, report, at: Self.time(Double(second)))
            state.requestFailed(1, "no route", at: Self.time(Double(second)))
        }
        let lines = state.render(columns: 80, rows: 24, now: Self.time(1)).map(\.text)
        #expect(lines.contains { $0.hasPrefix("22222222 dead 1s") })
        #expect(lines[0] == "critical: 10.0.0.2:8081 no route")
        #expect(!lines.contains { $0.hasPrefix("10.0.0.2") })
    }

    @Test("A member that is not asked is shown as others see it")
    func unasked() throws {
        var state = TopState(places: ["10.0.0.1:8081"], interval: .seconds(1))
        let members = [
            Reports.member(1, isSelf: true), Reports.member(2, "suspected", lag: 4),
            Reports.member(3, "left"),
        ]
        state.received(0, Reports.statistics(at: 0, members: members), at: Self.time(0))
        let lines = state.render(columns: 80, rows: 24, now: Self.time(0)).map(\.text)
        #expect(lines.contains { $0.hasPrefix("22222222 suspected") && $0.hasSuffix("   4") })
        #expect(!lines.contains { $0.hasPrefix("33333333") })
    }

    @Test("After a restart, figures of the former process are not subtracted")
    func restarted() throws {
        var state = TopState(places: ["a:1"], interval: .seconds(1))
        for (second, at) in [(0, 90_000), (1, 91_000), (2, 500)] {
            let report = Reports.statistics(at: Int64(at), hits: UInt64(at))
            state.received(0, report, at: Self.time(Double(second)))
        }
        let lines = state.render(columns: 80, rows: 24, now: Self.time(2)).map(\.text)
        #expect(lines.contains { $0.contains("no figures yet") })
    }

    @Test("A node's text cannot change the terminal")
    func hostile() throws {
        var state = TopState(places: ["a:1"], interval: .seconds(1))
        state.received(0, Reports.statistics(at: 0), at: Self.time(0))
        state.received(0, Reports.hot([("http://a/\u{1B}]0;x\u{7}\u{1B}[2J", 9)]))
        let text = state.render(columns: 80, rows: 24, now: Self.time(0)).map {
            $0.rendered(isColoured: false)
        }.joined()
        #expect(!text.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
    }
}

@Suite("The keys of nuthatch top")
struct TopKeyTests {
    @Test(
        "Keys are read one by one, including escape sequences",
        arguments: [
            ("q", [.quit]), ("\u{3}", [.quit]), ("sp ?", [.sort, .pause, .pause, .help]),
            ("v", [.nextView]), ("n\tN", [.next, .next, .previous]), ("\u{1B}", [.escape]),
            ("\u{1B}[B\u{1B}[A", [.next, .previous]), ("\u{1B}OB", [.next]),
            ("\u{1B}[Z", [.previous]), ("\u{1B}[15~q", [.quit]), ("x", []), ("\u{1B}[1;5", []),
        ] as [(String, [TopKey])])
    func keys(text: String, keys: [TopKey]) {
        #expect(TopKey.keys(Array(text.utf8)) == keys)
    }

    @Test("Only q quits")
    func quit() {
        var state = TopState(places: ["a:1"], interval: .seconds(1))
        let others: [TopKey] = [.sort, .pause, .next, .previous, .nextView, .help, .escape]
        for key in others {
            let goesOn = state.keyPressed(key)
            #expect(goesOn, "\(key)")
        }
        let goesOn = state.keyPressed(.quit)
        #expect(!goesOn)
    }
}
