package import Admin
package import Ground

/// The state of `nuthatch top`: responses and keys go in, and ``render(columns:rows:now:)`` returns
/// the screen.
package struct TopState: Sendable {
    /// The order in which nodes are listed.
    package enum Order: String, CaseIterable, Sendable {
        case asListed = "as given"
        case requests
        /// By hit ratio, the lowest first.
        case hits
        /// By the 99th percentile of response times, the slowest first.
        case latency = "p99"
        case memory
        case origin
    }

    /// The contents of the screen.
    package enum View: String, CaseIterable, Sendable {
        /// The nodes, the most requested images, and the latest purges.
        case overview
        /// The conditions with advice.
        case conditions
        case origins
        case sites
        /// The members of the cluster with their own reports.
        case members
        case certificates = "certs"
    }

    /// The nodes as given, followed by members that were discovered.
    package private(set) var nodes: [TopNode]
    /// The order in which nodes are listed.
    package private(set) var order = Order.asListed
    /// The contents of the screen.
    package private(set) var view = View.overview
    /// True while no poll is started.
    package private(set) var isPaused = false
    /// True while the help is shown.
    package private(set) var showsHelp = false
    /// The index of the node whose traffic, entries and purges are shown; `nil` for all together.
    package private(set) var selection: Int?
    /// The polling interval.
    package let interval: Interval

    /// Creates a state for the nodes at these addresses.
    package init(places: [String], interval: Interval) {
        nodes = places.map { TopNode(place: $0) }
        self.interval = interval
    }

    // MARK: Responses

    /// Adds the statistics of a node, which ends its failure; `node` is its index in ``nodes``.
    package mutating func received(_ node: Int, _ report: StatisticsDocument, at now: Instant) {
        nodes[node].statisticsReceived(report, at: now)
    }

    /// Sets the id of a node from its status.
    package mutating func received(_ node: Int, _ report: StatusDocument) {
        nodes[node].identify(report.node)
    }

    /// Replaces the most requested entries of a node.
    package mutating func received(_ node: Int, _ report: DocumentList<HotEntryDocument>) {
        nodes[node].hot = report.items
    }

    /// Replaces the latest purges of a node.
    package mutating func received(_ node: Int, _ purges: [ReceiptDocument]) {
        nodes[node].purges = purges
    }

    /// Replaces the conditions of a node.
    package mutating func received(_ node: Int, _ report: ConditionsDocument) {
        nodes[node].reportedConditions = report.conditions
    }

    /// Replaces the origins of a node.
    package mutating func received(_ node: Int, _ origins: [OriginDocument]) {
        nodes[node].origins = origins
    }

    /// Replaces the sites of a node.
    package mutating func received(_ node: Int, _ sites: [SiteDocument]) {
        nodes[node].sites = sites
    }

    /// Replaces the certificates of a node.
    package mutating func received(_ node: Int, _ certificates: [CertificateDocument]) {
        nodes[node].certificates = certificates
    }

    /// Records that a node does not respond, with the reason in a few words.
    package mutating func requestFailed(_ node: Int, _ why: String, at now: Instant) {
        nodes[node].requestFailed(why, at: now)
    }

    /// Adds a member that responds at `place`.
    package mutating func memberDiscovered(_ id: String, at place: String) {
        nodes.append(TopNode(place: place, id: id))
    }

    // MARK: Keys

    /// Handles a key; returns false if the session ends.
    package mutating func keyPressed(_ key: TopKey) -> Bool {
        switch key {
        case .quit: return false
        case .escape where showsHelp: showsHelp = false
        case .escape: (selection, view) = (nil, .overview)
        case .nextView: view = Self.following(view)
        case .help: showsHelp.toggle()
        case .pause: isPaused.toggle()
        case .sort:
            order = Self.following(order)
        case .next: moveSelection(by: 1)
        case .previous: moveSelection(by: -1)
        }
        return true
    }

    /// Returns the case after `value`, the first after the last.
    private static func following<Value: CaseIterable & Equatable>(_ value: Value) -> Value {
        let all = Array(Value.allCases)
        let index = all.firstIndex(of: value) ?? 0
        return all[(index + 1) % all.count]
    }

    /// Moves the selection; all together is before the first node and after the last.
    private mutating func moveSelection(by step: Int) {
        let rows = rows.compactMap(\.index)
        let stops = [nil] + rows.map(Optional.some)
        let place = stops.firstIndex { $0 == selection } ?? 0
        selection = stops[(place + step + stops.count) % stops.count]
    }

    // MARK: Derived values

    /// The nodes whose traffic is shown.
    var selectedNodes: [TopNode] { selection.map { [nodes[$0]] } ?? nodes }

    /// The rates of the selected nodes together; `nil` if none has responded twice.
    var totalRates: TopRates? {
        let all = selectedNodes.compactMap(\.rates)
        guard var sum = all.first else { return nil }
        for figures in all.dropFirst() { sum.add(figures) }
        return sum
    }

    /// The node whose view of the members is shown: of the selected nodes that respond, or else of
    /// all that do, the first that is not fenced, or else the first.
    var referenceNode: TopNode? {
        var answering = selectedNodes.filter { $0.report != nil }
        if answering.isEmpty { answering = nodes.filter { $0.report != nil } }
        return answering.first { $0.report?.isFenced == false } ?? answering.first
    }

    /// Returns the requests per second and hit ratios of the selected nodes at each of the last
    /// `count` polls, the newest last; `nil` where there is no value.
    func history(_ count: Int) -> (requests: [Double?], hits: [Double?]) {
        var requests: [Double?] = []
        var hits: [Double?] = []
        for back in stride(from: count, to: 0, by: -1) {
            let points = selectedNodes.compactMap { node -> TopNode.Point? in
                node.points.count >= back ? node.points[node.points.count - back] : nil
            }
            requests.append(points.isEmpty ? nil : points.reduce(0) { $0 + $1.requestsPerSecond })
            hits.append(points.map(\.counts).reduce(SourceCounts(), +).hitRatio)
        }
        return (requests, hits)
    }

    /// Returns the conditions of the selected nodes.
    func conditions(now: Instant) -> ConditionReport {
        ConditionReport(selectedNodes.map { ($0.name, $0.conditions(now: now)) })
    }

    /// The origins as all selected nodes together see them.
    var origins: [OriginDocument] {
        Self.sums(selectedNodes.flatMap(\.origins), of: \.name) { $0.adding($1) }
    }

    /// The sites on all selected nodes together.
    var sites: [SiteDocument] {
        Self.sums(selectedNodes.flatMap(\.sites), of: \.site) { $0.adding($1) }
    }

    /// Returns the sums of documents with the same name.
    private static func sums<Document>(
        _ documents: [Document], of name: (Document) -> String,
        _ add: (Document, Document) -> Document
    ) -> [Document] {
        var sums: [String: Document] = [:]
        for document in documents {
            let name = name(document)
            sums[name] = sums[name].map { add($0, document) } ?? document
        }
        return Array(sums.values)
    }

    /// The most requested entries of all selected nodes together.
    var hottest: [HotEntryDocument] {
        var sums: [String: HotEntryDocument] = [:]
        for entry in selectedNodes.filter({ $0.report != nil }).flatMap(\.hot) {
            if sums[entry.url] == nil {
                sums[entry.url] = entry
            } else {
                sums[entry.url]?.accesses += entry.accesses
            }
        }
        return sums.values.sorted { ($1.accesses, $0.url) < ($0.accesses, $1.url) }
    }

    /// The latest purges, the newest first; for each, the receipt with the most confirmations.
    var purges: [ReceiptDocument] {
        var receipts: [String: ReceiptDocument] = [:]
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
