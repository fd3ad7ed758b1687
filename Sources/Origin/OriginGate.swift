package import Ground

/// Who may open a connection to which origin, who waits for one, and which origins are left alone:
/// one for all event loops of a node.
///
/// A *place* is a connection, open or being opened, idle ones included; an origin has so many.
/// Fetches for which there is no place wait in the order in which they came, whatever loop they are
/// on, those of clients with fewer connections first; those whose client has its share wait for it.
/// A connection that becomes free goes to a fetch that waits on its own loop before one on
/// another loop, which would have to open one anew, but passes over the first only so often.
package struct OriginGate: Sendable {
    /// Names a fetch that asks or waits: the number of its loop, and its own there.
    package struct Ticket: Hashable, Sendable {
        package var loop: Int
        package var fetch: UInt64

        package init(loop: Int, fetch: UInt64) {
            self.loop = loop
            self.fetch = fetch
        }
    }

    /// What a fetch that arrives does.
    package enum Admission: Hashable, Sendable {
        /// Joins the others of its loop on the connection that it was offered.
        case join
        /// Takes an idle connection of its loop.
        case useIdle
        /// Opens a connection, for which it has a place now.
        case open
        /// Waits for ``News/granted(_:)``. If a loop is named, that one is to close an idle
        /// connection to the origin, whose place it will get.
        case wait(closingIdleOn: Int?)
        case refused(Refusal)
    }

    /// Why a fetch does not even wait.
    package enum Refusal: Hashable, Sendable {
        /// As many wait as are allowed.
        case queueFull
        /// As many wait as are allowed of one holder.
        case shareTaken
        /// The origin fails.
        case circuitOpen(retryAfter: Interval)
    }

    /// What is done with a connection that became free.
    package enum Release: Hashable, Sendable {
        /// Kept for a later fetch.
        case keep
        /// Given to a fetch that waits on the same loop.
        case handOver(Ticket)
        /// Closed, for one that waits on another loop.
        case close
    }

    /// What is told to fetches that wait.
    package enum News: Hashable, Sendable {
        /// Has a place at the origin now, and opens a connection; if it has left meanwhile, the
        /// place is given back.
        case granted(Ticket, OriginAuthority)
        /// Waits no more: the circuit opened.
        case refused(Ticket, retryAfter: Interval)
    }

    /// How a fetch ended, as far as its origin is concerned.
    package enum Outcome: Hashable, Sendable {
        case succeeded
        case failed(CircuitBreaker.Failure)
        /// It says nothing of the origin.
        case neutral
    }

    /// A change of an origin's circuit, for the log.
    package enum Change: Hashable, Sendable {
        case opened(failures: Int, pause: Interval)
        case closed
    }

    /// Limits of an ``OriginGate``.
    package struct Settings: Hashable, Sendable {
        /// Connections to one origin.
        package var connectionsMax: Int
        /// Fetches that wait for one origin.
        package var queueMax: Int
        package var circuit: CircuitLimits
        /// Hundredths of both that one client, and fetches with bodies, may have.
        package var clientPercent: Int
        package var uploadPercent: Int

        package init(
            connectionsMax: Int, queueMax: Int, circuit: CircuitLimits, clientPercent: Int = 100,
            uploadPercent: Int = 100
        ) {
            self.connectionsMax = connectionsMax
            self.queueMax = queueMax
            self.circuit = circuit
            self.clientPercent = clientPercent
            self.uploadPercent = uploadPercent
        }

        fileprivate func shares(of placesMax: Int) -> ShareTable.Limits {
            ShareTable.Limits(
                placesMax: placesMax, clientPercent: clientPercent, uploadPercent: uploadPercent)
        }
    }

    struct Waiting: Sendable {
        let ticket: Ticket
        let holders: [ShareHolder]
        /// How often a later one was served before it.
        var passedOver = 0
    }

    /// What is known of one origin.
    struct Origin: Sendable {
        /// Places taken.
        var open = 0
        /// Idle connections by loop; none of 0.
        var idle: [Int: Int] = [:]
        /// Idle connections that a loop was asked to close.
        var closing = 0
        var queue: [Waiting] = []
        /// Whom the fetches belong to that have connections of their own, and those that wait.
        var shares: ShareTable
        var queueShares: ShareTable
        /// Of those with connections, who belongs to anybody.
        var holders: [Ticket: [ShareHolder]] = [:]
        var circuit = CircuitBreaker()
        /// Fetches that try the origin while its circuit is half open.
        var trials: [Ticket] = []
        var lastFailure = Instant.zero

        init(_ settings: Settings) {
            shares = ShareTable(settings.shares(of: settings.connectionsMax))
            queueShares = ShareTable(settings.shares(of: settings.queueMax))
        }

        var isQuiet: Bool {
            open == 0 && queue.isEmpty && holders.isEmpty && circuit.isQuiet
        }
    }

    /// How often the first that waits may be passed over.
    static let passesMax = 8
    /// Origins without connections that are remembered because they failed.
    static let failedMax = 10_000

    package var settings: Settings
    var origins: [OriginAuthority: Origin] = [:]
    /// Circuits opened since the start.
    package internal(set) var openings: UInt64 = 0

    package init(settings: Settings) {
        self.settings = settings
    }
}

// MARK: - Fetches

extension OriginGate {
    /// How long no fetch goes to the origin because its circuit is open; nil if one may.
    package func pause(at authority: OriginAuthority, now: Instant) -> Interval? {
        origins[authority]?.circuit.pause(now: now)
    }

    /// A fetch wants a connection, as one of `holders`; `mayJoin` if one that others of its loop
    /// use has room for it.
    package mutating func arrived(
        _ ticket: Ticket, for holders: [ShareHolder] = [], at authority: OriginAuthority,
        mayJoin: Bool = false, now: Instant
    ) -> Admission {
        var origin = origins[authority, default: Origin(settings)]
        defer { store(origin, of: authority) }
        switch origin.circuit.arrived(limits: settings.circuit, now: now) {
        case .refused(let retryAfter): return .refused(.circuitOpen(retryAfter: retryAfter))
        case .trial: origin.trials.append(ticket)
        case .go: break
        }
        let admission =
            mayJoin && origin.passesOthers(of: ticket.loop)
            ? Admission.join : admit(ticket, holders, to: &origin)
        if case .refused = admission, origin.endTrial(ticket) { origin.circuit.trialAbandoned() }
        return admission
    }

    private func admit(
        _ ticket: Ticket, _ holders: [ShareHolder], to origin: inout Origin
    ) -> Admission {
        let isEntitled = origin.shares.hasShare(for: holders)
        let hasPlace = origin.open < settings.connectionsMax || origin.idle[ticket.loop] != nil
        if isEntitled, hasPlace, origin.nextEntitled() == nil {
            origin.hold(ticket, holders)
            if origin.takeIdle(on: ticket.loop) { return .useIdle }
            origin.open += 1
            return .open
        }
        guard origin.queue.count < settings.queueMax else { return .refused(.queueFull) }
        guard origin.queueShares.hasShare(for: holders) else { return .refused(.shareTaken) }
        origin.queue.append(Waiting(ticket: ticket, holders: holders))
        origin.queueShares.take(holders)
        guard isEntitled, origin.closing < origin.queue.count, let loop = origin.idleLoop else {
            return .wait(closingIdleOn: nil)
        }
        // Not idle any more: no fetch takes it while it is being closed.
        _ = origin.takeIdle(on: loop)
        origin.closing += 1
        return .wait(closingIdleOn: loop)
    }

    /// A connection that others of its loop use has room for a fetch that waits; true if it waits
    /// no more.
    package mutating func joined(_ ticket: Ticket, _ authority: OriginAuthority) -> Bool {
        guard var origin = origins[authority],
            let index = origin.queue.firstIndex(where: { $0.ticket == ticket }),
            origin.passesOthers(of: ticket.loop, before: index)
        else { return false }
        _ = origin.dequeue(at: index)
        store(origin, of: authority)
        return true
    }

    /// A fetch waits no more, of its own accord.
    package mutating func left(_ ticket: Ticket, _ authority: OriginAuthority) {
        guard var origin = origins[authority],
            let index = origin.queue.firstIndex(where: { $0.ticket == ticket })
        else { return }
        _ = origin.dequeue(at: index)
        store(origin, of: authority)
    }

    /// The head of an answer came; tells if the circuit closes by that.
    package mutating func answered(_ authority: OriginAuthority) -> Change? {
        guard var origin = origins[authority], !origin.circuit.isQuiet else { return nil }
        let closes = origin.circuit.answered()
        if closes { origin.trials = [] }
        store(origin, of: authority)
        return closes ? .closed : nil
    }

    /// A fetch that was admitted is over; `releases` if ``released(_:on:)`` follows for its
    /// connection, or ``closed(_:wasAskedFor:)``, so that its share need not be passed on here.
    package mutating func ended(
        _ ticket: Ticket, _ authority: OriginAuthority, _ outcome: Outcome, now: Instant,
        releases: Bool = true
    ) -> (change: Change?, news: [News]) {
        var origin = origins[authority, default: Origin(settings)]
        defer { store(origin, of: authority) }
        origin.letGo(ticket)
        let isTrial = origin.endTrial(ticket)
        switch outcome {
        case .succeeded:
            origin.circuit.succeeded(now: now)
        case .neutral:
            if isTrial { origin.circuit.trialAbandoned() }
        case .failed(let failure):
            origin.lastFailure = now
            // While it is half open only the trials decide.
            if origin.circuit.state == .halfOpen, !isTrial { break }
            guard origin.circuit.failed(failure, limits: settings.circuit, now: now),
                case .open(let until) = origin.circuit.state
            else { break }
            origin.trials = []
            openings += 1
            let news = origin.queue.map {
                News.refused($0.ticket, retryAfter: until - now)
            }
            origin.queue = []
            origin.queueShares = ShareTable(origin.queueShares.limits)
            return (.opened(failures: origin.circuit.failures, pause: until - now), news)
        }
        guard !releases, let news = grant(&origin, authority) else { return (nil, []) }
        return (nil, [news])
    }

    /// Fetches wait for a connection to the origin.
    package func isContended(_ authority: OriginAuthority) -> Bool {
        origins[authority]?.queue.isEmpty == false
    }
}

// MARK: - Connections

extension OriginGate {
    /// One more connection is opened without asking: a further attempt of a race, or in place of
    /// one that turned out closed.
    package mutating func opened(_ authority: OriginAuthority) {
        origins[authority, default: Origin(settings)].open += 1
    }

    /// A connection on `loop` has ended an answer and may carry another.
    package mutating func released(_ authority: OriginAuthority, on loop: Int) -> Release {
        var origin = origins[authority, default: Origin(settings)]
        defer { store(origin, of: authority) }
        // More than allowed, because the limit was lowered or attempts raced.
        guard origin.open <= settings.connectionsMax else { return .close }
        guard let first = origin.nextEntitled() else {
            origin.idle[loop, default: 0] += 1
            return .keep
        }
        let index =
            origin.queue[first].passedOver < Self.passesMax
            ? origin.nextEntitled(on: loop)
            : origin.queue[first].ticket.loop == loop ? first : nil
        guard let index else { return .close }
        origin.passOthers(before: index)
        let chosen = origin.dequeue(at: index)
        origin.hold(chosen.ticket, chosen.holders)
        return .handOver(chosen.ticket)
    }

    /// An idle connection on `loop` is being closed, and not because the gate asked for that.
    package mutating func idleEnded(_ authority: OriginAuthority, on loop: Int) {
        guard var origin = origins[authority] else { return }
        _ = origin.takeIdle(on: loop)
        store(origin, of: authority)
    }

    /// A connection is gone, or a place was not used after all; `wasAskedFor` if the gate had asked
    /// a loop to close it.
    package mutating func closed(
        _ authority: OriginAuthority, wasAskedFor: Bool = false
    ) -> News? {
        guard var origin = origins[authority] else { return nil }
        precondition(origin.open > 0, "closed a connection to \(authority) that was not open")
        origin.open -= 1
        if wasAskedFor { origin.closing = max(0, origin.closing - 1) }
        let news = grant(&origin, authority)
        store(origin, of: authority)
        return news
    }

    /// A loop that was asked to close an idle connection had none left.
    package mutating func nothingClosed(_ authority: OriginAuthority) {
        guard var origin = origins[authority] else { return }
        origin.closing = max(0, origin.closing - 1)
        store(origin, of: authority)
    }

    /// From now on other limits hold.
    package mutating func adopt(_ settings: Settings) -> [News] {
        self.settings = settings
        var news: [News] = []
        if settings.circuit.failures == nil {
            for authority in origins.keys {
                origins[authority]?.circuit = CircuitBreaker()
                origins[authority]?.trials = []
            }
        }
        for authority in origins.keys {
            origins[authority]?.shares.limits = settings.shares(of: settings.connectionsMax)
            origins[authority]?.queueShares.limits = settings.shares(of: settings.queueMax)
        }
        for authority in origins.keys.sorted(by: { $0.description < $1.description }) {
            while let granted = origins[authority].flatMap({ origin -> News? in
                var origin = origin
                let granted = grant(&origin, authority)
                origins[authority] = origin
                return granted
            }) { news.append(granted) }
        }
        return news
    }

    private func grant(_ origin: inout Origin, _ authority: OriginAuthority) -> News? {
        guard origin.open < settings.connectionsMax, let first = origin.nextEntitled() else {
            return nil
        }
        origin.open += 1
        let chosen = origin.dequeue(at: first)
        origin.hold(chosen.ticket, chosen.holders)
        return .granted(chosen.ticket, authority)
    }

    private mutating func store(_ origin: Origin, of authority: OriginAuthority) {
        origins[authority] = origin.isQuiet ? nil : origin
        guard origins.count > Self.failedMax else { return }
        let idle = origins.filter { $0.value.open == 0 && $0.value.queue.isEmpty }
        guard idle.count > Self.failedMax else { return }
        let order = idle.map { ($0.value.lastFailure, $0.key) }.sorted { $0.0 < $1.0 }
        for (_, name) in order.prefix(Self.failedMax / 10) { origins[name] = nil }
    }
}
