package import Ground

/// What `nuthatch top` knows and how it is to be shown: answers and keys go in, and
/// ``screen(columns:rows:now:)`` comes out.
package struct TopState: Sendable {
    /// In which order the nodes are listed.
    package enum Order: String, CaseIterable, Sendable {
        case asListed = "as given"
        case requests
        /// The fewest first.
        case hits
        /// The slowest first.
        case latency = "p99"
        case memory
        case origin
    }

    /// As they were given; members that were found are behind them.
    package private(set) var nodes: [TopNode]
    package private(set) var arguments = Order.asListed
    package private(set) var isPaused = false
    package private(set) var showsHelp = false
    /// Whose traffic, images and purges are shown; nil for all together.
    package private(set) var selection: Int?
    /// How often the nodes are asked.
    package let interval: Interval

    package init(places: [String], interval: Interval) {
        nodes = places.map { TopNode(place: $0) }
        self.interval = interval
    }

    // MARK: Answers

    /// `node` is its place in ``nodes``, as below.
    package mutating func received(_ node: Int, _ report: StatisticsReport, at now: Instant) {
        nodes[node].statisticsReceived(report, at: now)
    }

    package mutating func received(_ node: Int, _ report: StatusReport) {
        nodes[node].identify(report.node)
    }

    package mutating func received(_ node: Int, _ report: HotReport) {
        nodes[node].hot = report.entries
    }

    package mutating func received(_ node: Int, _ purges: [ReceiptReport]) {
        nodes[node].purges = purges
    }

    /// It gave no answer, `why` says why in a few words.
    package mutating func requestFailed(_ node: Int, _ why: String, at now: Instant) {
        nodes[node].requestFailed(why, at: now)
    }

    /// A member was found that can be asked at `place`.
    package mutating func memberDiscovered(_ id: String, at place: String) {
        nodes.append(TopNode(place: place, id: id))
    }

    // MARK: Keys

    /// False if it is over.
    package mutating func keyPressed(_ key: TopKey) -> Bool {
        switch key {
        case .quit: return false
        case .escape where showsHelp: showsHelp = false
        case .escape: selection = nil
        case .help: showsHelp.toggle()
        case .pause: isPaused.toggle()
        case .sort:
            let all = Order.allCases
            let index = all.firstIndex(of: arguments) ?? 0
            arguments = all[(index + 1) % all.count]
        case .next: moveSelection(by: 1)
        case .previous: moveSelection(by: -1)
        }
        return true
    }

    /// All together is before the first node and behind the last.
    private mutating func moveSelection(by step: Int) {
        let rows = rows.compactMap(\.index)
        let stops = [nil] + rows.map(Optional.some)
        let place = stops.firstIndex { $0 == selection } ?? 0
        selection = stops[(place + step + stops.count) % stops.count]
    }

    // MARK: What follows

    /// Those whose traffic is shown.
    var selectedNodes: [TopNode] { selection.map { [nodes[$0]] } ?? nodes }

    /// What they did together; nil if none has answered twice.
    var totalRates: TopRates? {
        let all = selectedNodes.compactMap(\.rates)
        guard var sum = all.first else { return nil }
        for figures in all.dropFirst() { sum.add(figures) }
        return sum
    }

    /// Whose word on the members counts: of those that answer the first that is not fenced.
    var referenceNode: TopNode? {
        var answering = selectedNodes.filter { $0.report != nil }
        if answering.isEmpty { answering = nodes.filter { $0.report != nil } }
        return answering.first { $0.report?.isFenced == false } ?? answering.first
    }

    /// Requests per second and hit ratio each time that they were asked, the newest last.
    func history(_ count: Int) -> (requests: [Double?], hits: [Double?]) {
        var requests: [Double?] = []
        var hits: [Double?] = []
        for back in stride(from: count, to: 0, by: -1) {
            let points = selectedNodes.compactMap { node -> TopNode.Point? in
                node.points.count >= back ? node.points[node.points.count - back] : nil
            }
            requests.append(points.isEmpty ? nil : points.reduce(0) { $0 + $1.requestsPerSecond })
            hits.append(points.map(\.counts).reduce(.zero, +).hitRatio)
        }
        return (requests, hits)
    }

    /// What is asked for most, of all watched together.
    var hottest: [HotReport.Entry] {
        var sums: [String: HotReport.Entry] = [:]
        for entry in selectedNodes.filter({ $0.report != nil }).flatMap(\.hot) {
            if sums[entry.url] == nil {
                sums[entry.url] = entry
            } else {
                sums[entry.url]?.accesses += entry.accesses
            }
        }
        return sums.values.sorted { ($1.accesses, $0.url) < ($0.accesses, $1.url) }
    }

    /// The last purges, the newest first; of each the receipt that knows most.
    var purges: [ReceiptReport] {
        var receipts: [String: ReceiptReport] = [:]
        for receipt in selectedNodes.filter({ $0.report != nil }).flatMap(\.purges) {
            if let known = receipts[receipt.receipt], known.confirmed >= receipt.confirmed {
                continue
            }
            receipts[receipt.receipt] = receipt
        }
        return receipts.values.sorted {
            ($0.ageMilliseconds, $0.receipt) < ($1.ageMilliseconds, $1.receipt)
        }
    }
}
