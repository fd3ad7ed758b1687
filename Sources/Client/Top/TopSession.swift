import Admin
import Glibc
import Ground
import Telemetry

/// The polling of nodes for `nuthatch top`, which passes their responses to the state of the
/// screen.
final class TopSession {
    /// The state of the screen.
    var state: TopState
    /// The clients of ``TopState/nodes``, in the same order.
    private var clients: [NodeClient]
    private let interval: Interval
    /// The queries in progress.
    private var pending: [PendingPoll] = []
    /// The time of the next poll.
    private var nextPollAt: Instant
    /// The number of polls so far.
    private var round = 0
    /// The admin port of the only named node, at which other members are looked for; `nil` for no
    /// search.
    private var discoveryPort: UInt16?
    /// The ids of members that were looked for.
    private var probedMembers: Set<String> = []

    /// A query in progress.
    private struct PendingPoll {
        /// The kind of query.
        enum Kind {
            case status
            case statistics
            case hot
            case purges
            case conditions
            case origins
            case sites
            case certificates
            /// A check whether the member with this id responds.
            case discovery(String, NodeClient)
        }

        /// The index of the queried node; for a discovery, of the node that named the member.
        let node: Int
        let kind: Kind
        let exchange: Exchange

        var isDiscovery: Bool { if case .discovery = kind { true } else { false } }
    }

    /// Creates a session that polls at an interval.
    init(_ clients: [NodeClient], every interval: Interval) {
        self.clients = clients
        self.interval = interval
        state = TopState(places: clients.map { "\($0.endpoint)" }, interval: interval)
        nextPollAt = BootClock.now()
    }

    /// Queries all nodes for the first time.
    ///
    /// - Parameter isAlone: true if the operator has named at most one node; members of its cluster
    ///   are then looked for, unless requests carry a token.
    /// - Throws: the first error, if no node responds with success.
    func connect(isAlone: Bool) throws(CommandError) {
        // A member's host comes from another node, so a token must not be sent there.
        if isAlone, clients.count == 1, !clients[0].hasToken {
            discoveryPort = clients[0].endpoint.port
        }
        let exchanges = clients.map { $0.start(NodeClient.request(.getStatus)) }
        Exchange.advance(exchanges)
        var fault: CommandError?
        for (index, client) in clients.enumerated() {
            do throws(CommandError) {
                state.received(
                    index, try client.document(StatusDocument.self, of: exchanges[index]))
            } catch {
                fault = fault ?? error
            }
        }
        let hasAnswer = exchanges.contains { exchange in
            if case .success(let response) = exchange.outcome { response.isSuccess } else { false }
        }
        if !hasAnswer, let fault { throw fault }
    }

    /// Polls and waits for all responses, `times` times.
    func sample(times: Int) {
        for time in 0..<times {
            if time > 0 { waitForNextPoll() }
            pollAll()
            while !pending.isEmpty {
                _ = Exchange.poll(
                    for: pending.map(\.exchange), orUntilReadable: [], until: .distantFuture)
                processCompleted()
            }
        }
    }

    /// Waits until the next poll is due.
    func waitForNextPoll() {
        BootClock.pause(nextPollAt - BootClock.now())
    }

    /// Starts a poll if one is due, and continues until there is an update to show or one of
    /// `inputs` can be read.
    ///
    /// - Returns: those that can be read.
    func runUntilUpdate(orUntilReadable inputs: [CInt]) -> Set<CInt> {
        if BootClock.now() >= nextPollAt, !state.isPaused { pollAll() }
        while true {
            // Durations that grow with time are updated every second.
            let until = state.isPaused ? BootClock.now() + .seconds(1) : nextPollAt
            let readable = Exchange.poll(
                for: pending.map(\.exchange), orUntilReadable: inputs, until: until)
            let hadFlights = !pending.isEmpty
            processCompleted()
            let isComplete = hadFlights && pending.isEmpty
            if !readable.isEmpty || isComplete || BootClock.now() >= until { return readable }
        }
    }

    // MARK: Queries

    /// Starts the queries of a poll, except to nodes with queries in progress, and schedules the
    /// next.
    private func pollAll() {
        scheduleNextPoll()
        round += 1
        let busy = Set(pending.filter { !$0.isDiscovery }.map(\.node))
        for node in clients.indices where !busy.contains(node) {
            start(.statistics, NodeClient.request(.getStatistics), node)
            if state.nodes[node].id == nil {
                start(.status, NodeClient.request(.getStatus), node)
            }
            // These change slowly.
            guard round % 2 == 1 else { continue }
            start(.conditions, NodeClient.request(.getConditions), node)
            start(.origins, NodeClient.request(.listOrigins), node)
            start(.sites, NodeClient.request(.listSites), node)
            if round % 20 == 1 {
                start(.certificates, NodeClient.request(.listCertificates), node)
            }
            start(.hot, NodeClient.request(.listHotEntries, query: [("limit", "40")]), node)
            start(.purges, NodeClient.request(.listPurges, query: [("limit", "20")]), node)
        }
    }

    /// Schedules the next poll; missed ones are skipped.
    private func scheduleNextPoll() {
        let now = BootClock.now()
        nextPollAt = nextPollAt + interval > now ? nextPollAt + interval : now + interval
    }

    /// Starts a query.
    private func start(_ kind: PendingPoll.Kind, _ question: NodeRequest, _ node: Int) {
        pending.append(
            PendingPoll(node: node, kind: kind, exchange: clients[node].start(question)))
    }

    /// Processes the queries that have ended; only failed ones for statistics count as failures of
    /// the node.
    private func processCompleted() {
        let over = pending.filter { $0.exchange.outcome != nil }
        guard !over.isEmpty else { return }
        pending.removeAll { $0.exchange.outcome != nil }
        for flight in over {
            do throws(CommandError) {
                try process(flight)
            } catch {
                guard case .statistics = flight.kind else { continue }
                state.requestFailed(flight.node, error.shortText, at: BootClock.now())
            }
        }
    }

    /// Passes the response of a query to the state, and adds a discovered member that has the
    /// expected id.
    private func process(_ flight: PendingPoll) throws(CommandError) {
        let (node, client) = (flight.node, clients[flight.node])
        switch flight.kind {
        case .statistics:
            let report = try client.document(StatisticsDocument.self, of: flight.exchange)
            state.received(node, report, at: BootClock.now())
            discoverMembers(for: report.members, node)
        case .status:
            state.received(node, try client.document(StatusDocument.self, of: flight.exchange))
        case .hot:
            state.received(
                node, try client.document(DocumentList<HotEntryDocument>.self, of: flight.exchange))
        case .purges:
            let page = try client.document(DocumentList<ReceiptDocument>.self, of: flight.exchange)
            state.received(node, page.items)
        case .conditions:
            state.received(node, try client.document(ConditionsDocument.self, of: flight.exchange))
        case .origins:
            state.received(
                node,
                try client.document(DocumentList<OriginDocument>.self, of: flight.exchange)
                    .items)
        case .sites:
            state.received(
                node,
                try client.document(DocumentList<SiteDocument>.self, of: flight.exchange)
                    .items)
        case .certificates:
            let page = try client.document(
                DocumentList<CertificateDocument>.self, of: flight.exchange)
            state.received(node, page.items)
        case .discovery(let id, let found):
            let report = try found.document(StatusDocument.self, of: flight.exchange)
            guard report.node == id, !clients.contains(where: { $0.endpoint == found.endpoint })
            else { return }
            clients.append(found)
            state.memberDiscovered(id, at: "\(found.endpoint)")
        }
    }

    // MARK: Members that the operator has not named

    /// Queries each unknown live member on another host once, at the port of the named node; does
    /// nothing at 64 nodes.
    private func discoverMembers(for members: [MemberDocument], _ node: Int) {
        guard let discoveryPort, clients.count < 64 else { return }
        let known = Set(state.nodes.compactMap(\.id))
        for member in members where !member.isSelf && member.state == "alive" {
            guard !known.contains(member.node), !probedMembers.contains(member.node),
                let address = NodeEndpoint(member.address, defaultPort: discoveryPort),
                address.host != clients[0].endpoint.host, !address.host.hasPrefix("127.")
            else { continue }
            probedMembers.insert(member.node)
            let place = NodeEndpoint(host: address.host, port: discoveryPort)
            let client = clients[0].unauthenticated(place)
            pending.append(
                PendingPoll(
                    node: node, kind: .discovery(member.node, client),
                    exchange: client.start(NodeClient.request(.getStatus))))
        }
    }

    // MARK: JSON

    /// Queries the statistics of all nodes once, schedules the next poll, and returns a line of
    /// JSON for each node.
    func jsonLines() -> [String] {
        scheduleNextPoll()
        let exchanges = clients.map { $0.start(NodeClient.request(.getStatistics)) }
        Exchange.advance(exchanges)
        return zip(clients, exchanges).map { client, exchange in
            let at = JSON.text("\(client.endpoint)").compactText
            do throws(CommandError) {
                let response = try client.response(of: exchange)
                return "{\"at\":\(at),\"statistics\":\(response.jsonLine)}"
            } catch {
                return "{\"at\":\(at),\"fault\":\(JSON.text(error.shortText).compactText)}"
            }
        }
    }
}

/// The arguments of `nuthatch top`.
package struct TopArguments: Sendable {
    /// The polling interval, as the operator writes it.
    package var interval = "1s"
    /// True to show the screen once and end.
    package var isOnce = false

    /// Creates the default arguments.
    package init() {}
}

extension Commands {
    /// Shows the activity of nodes: on a terminal as a screen that is updated, otherwise once; for
    /// programs as a line of JSON for each node and poll.
    package func top(_ order: TopArguments) -> CommandOutcome {
        run { () throws(CommandError) in
            let interval = try CommandOptions.duration(order.interval, "--interval")
            guard interval >= .milliseconds(100) else {
                throw CommandError(.usageError, "--interval must be at least 100ms")
            }
            let watch = TopSession(try options.clients(), every: interval)
            try watch.connect(isAlone: options.nodes.count < 2)
            if options.isJSON { return printLines(watch, order) }
            guard !order.isOnce, console.isTerminal, let screen = Screen() else {
                watch.sample(times: 2)
                let lines = watch.state.render(
                    columns: console.columns ?? 140, rows: nil, now: BootClock.now())
                console.print(
                    lines.map { $0.rendered(isColoured: false) }.joined(separator: "\n"))
                return .succeeded
            }
            run(watch, on: screen)
            return .succeeded
        }
    }

    /// Prints a line for each node and poll, until the reader closes.
    private func printLines(_ watch: TopSession, _ order: TopArguments) -> CommandOutcome {
        while true {
            let isRead = watch.jsonLines().allSatisfy { line in
                Console.write(Array((line + "\n").utf8), to: STDOUT_FILENO)
            }
            if order.isOnce || !isRead { return .succeeded }
            watch.waitForNextPoll()
        }
    }

    /// Runs the session on a screen until it is ended.
    private func run(_ watch: TopSession, on screen: Screen) {
        let inputs = [screen.keyboard, screen.signalReadDescriptor].compactMap(\.self)
        var isOn = true
        while isOn {
            let (columns, rows) = screen.size
            screen.show(
                watch.state.render(columns: columns, rows: rows, now: BootClock.now()),
                isColoured: console.isColoured)
            let readable = watch.runUntilUpdate(orUntilReadable: inputs)
            if readable.contains(screen.signalReadDescriptor) { isOn = handleSignals(screen) }
            guard let keyboard = screen.keyboard, readable.contains(keyboard) else { continue }
            guard let keys = screen.keys() else { return }
            isOn = keys.allSatisfy { watch.state.keyPressed($0) } && isOn
        }
    }

    /// Handles signals; returns false if the session ends.
    private func handleSignals(_ screen: Screen) -> Bool {
        for wish in screen.pendingSignalActions() {
            switch wish {
            case .resize: continue
            case .suspend: screen.suspend()
            // The same as the key q, which is the way to leave it.
            case .terminate(SIGINT): return false
            case .terminate(let number): screen.terminate(by: number)
            }
        }
        return true
    }
}
