import Admin
import Ground
import Telemetry

/// Asks nodes for their figures again and again, and gives what they say to the state of the
/// screen.
final class TopWatch {
    var state: TopState
    private var clients: [NodeClient]
    private let interval: Interval
    private var flights: [Flight] = []
    /// When they are asked next.
    private var nextAt: Instant
    private var round = 0
    /// The admin port of the only node that was named: others of its cluster may have the same.
    private var guessedPort: UInt16?
    private var guessed: Set<String> = []

    /// One question on its way.
    private struct Flight {
        enum Kind {
            case status
            case statistics
            case hot
            case purges
            /// Whether the member of this id is there.
            case guess(String, NodeClient)
        }

        let node: Int
        let kind: Kind
        let exchange: Exchange

        var isGuess: Bool { if case .guess = kind { true } else { false } }
    }

    init(_ clients: [NodeClient], every interval: Interval) {
        self.clients = clients
        self.interval = interval
        state = TopState(places: clients.map { "\($0.place)" }, interval: interval)
        nextAt = SystemClock.now()
    }

    /// Asks all for the first time.
    ///
    /// - Throws: what the first one says against it, if none answers as a node.
    func greet(isAlone: Bool) throws(CommandFault) {
        // A member's host is what another node says: a token is not sent there.
        if isAlone, clients.count == 1, !clients[0].hasToken { guessedPort = clients[0].place.port }
        let exchanges = clients.map { $0.begin(NodeClient.question(.getStatus)) }
        Exchange.advance(exchanges)
        var fault: CommandFault?
        for (index, client) in clients.enumerated() {
            do throws(CommandFault) {
                state.answered(
                    index, try client.document(StatusReport.self, of: exchanges[index]))
            } catch {
                fault = fault ?? error
            }
        }
        let hasAnswer = exchanges.contains { exchange in
            if case .success(let answer) = exchange.outcome { answer.isSuccess } else { false }
        }
        if !hasAnswer, let fault { throw fault }
    }

    /// Asks and waits for all answers, so many times.
    func look(times: Int) {
        for time in 0..<times {
            if time > 0 { pause() }
            ask()
            while !flights.isEmpty {
                _ = Exchange.wait(
                    for: flights.map(\.exchange), orUntilReadable: [], until: .distantFuture)
                settle()
            }
        }
    }

    /// Waits until it is time to ask again.
    func pause() {
        SystemClock.pause(nextAt - SystemClock.now())
    }

    /// Goes on until there is something new to be shown, or one of `inputs` can be read.
    ///
    /// - Returns: those that can be read.
    func goOn(orUntilReadable inputs: [CInt]) -> Set<CInt> {
        if SystemClock.now() >= nextAt, !state.isPaused { ask() }
        while true {
            // What fills in by itself, such as how long something is silent, each second.
            let until = state.isPaused ? SystemClock.now() + .seconds(1) : nextAt
            let readable = Exchange.wait(
                for: flights.map(\.exchange), orUntilReadable: inputs, until: until)
            let hadFlights = !flights.isEmpty
            settle()
            let isComplete = hadFlights && flights.isEmpty
            if !readable.isEmpty || isComplete || SystemClock.now() >= until { return readable }
        }
    }

    // MARK: Asking

    private func ask() {
        setNext()
        round += 1
        let busy = Set(flights.filter { !$0.isGuess }.map(\.node))
        for node in clients.indices where !busy.contains(node) {
            begin(.statistics, NodeClient.question(.getStatistics), node)
            if state.nodes[node].id == nil {
                begin(.status, NodeClient.question(.getStatus), node)
            }
            // These change slowly.
            guard round % 2 == 1 else { continue }
            begin(.hot, NodeClient.question(.listHotEntries, query: [("limit", "40")]), node)
            begin(.purges, NodeClient.question(.listPurges, query: [("limit", "20")]), node)
        }
    }

    /// Times that were missed are not made up for.
    private func setNext() {
        let now = SystemClock.now()
        nextAt = nextAt + interval > now ? nextAt + interval : now + interval
    }

    private func begin(_ kind: Flight.Kind, _ question: Question, _ node: Int) {
        flights.append(
            Flight(node: node, kind: kind, exchange: clients[node].begin(question)))
    }

    /// Takes in what has come.
    private func settle() {
        let over = flights.filter { $0.exchange.outcome != nil }
        guard !over.isEmpty else { return }
        flights.removeAll { $0.exchange.outcome != nil }
        for flight in over {
            do throws(CommandFault) {
                try take(flight)
            } catch {
                guard case .statistics = flight.kind else { continue }
                state.failed(flight.node, error.shortText, at: SystemClock.now())
            }
        }
    }

    private func take(_ flight: Flight) throws(CommandFault) {
        let (node, client) = (flight.node, clients[flight.node])
        switch flight.kind {
        case .statistics:
            let report = try client.document(StatisticsReport.self, of: flight.exchange)
            state.answered(node, report, at: SystemClock.now())
            look(for: report.members, node)
        case .status:
            state.answered(node, try client.document(StatusReport.self, of: flight.exchange))
        case .hot: state.answered(node, try client.document(HotReport.self, of: flight.exchange))
        case .purges:
            let page = try client.document(ReceiptReport.Page.self, of: flight.exchange)
            state.answered(node, page.purges)
        case .guess(let id, let found):
            let report = try found.document(StatusReport.self, of: flight.exchange)
            guard report.node == id, !clients.contains(where: { $0.place == found.place })
            else { return }
            clients.append(found)
            state.found(id, at: "\(found.place)")
        }
    }

    // MARK: Members that nobody has named

    /// Asks members for themselves at their hosts, at the port of the node that was named; each
    /// once.
    private func look(for members: [MemberRow], _ node: Int) {
        guard let guessedPort, clients.count < 64 else { return }
        let known = Set(state.nodes.compactMap(\.id))
        for member in members where !member.isSelf && member.state == "alive" {
            guard !known.contains(member.node), !guessed.contains(member.node),
                let address = AskedPlace(member.address, defaultPort: guessedPort),
                address.host != clients[0].place.host, !address.host.hasPrefix("127.")
            else { continue }
            guessed.insert(member.node)
            let place = AskedPlace(host: address.host, port: guessedPort)
            let client = clients[0].asking(place)
            flights.append(
                Flight(
                    node: node, kind: .guess(member.node, client),
                    exchange: client.begin(NodeClient.question(.getStatus))))
        }
    }

    // MARK: For programs

    /// Asks all once, and gives a line of JSON for each.
    func lines() -> [String] {
        setNext()
        let exchanges = clients.map { $0.begin(NodeClient.question(.getStatistics)) }
        Exchange.advance(exchanges)
        return zip(clients, exchanges).map { client, exchange in
            let at = JSON.text("\(client.place)").line
            do throws(CommandFault) {
                let answer = try client.answer(of: exchange)
                return "{\"at\":\(at),\"statistics\":\(answer.jsonLine)}"
            } catch {
                return "{\"at\":\(at),\"fault\":\(JSON.text(error.shortText).line)}"
            }
        }
    }
}
