package import Ground
package import Telemetry

/// The state of one origin as this node sees it.
package struct OriginStatus: Hashable, Sendable {
    /// The origin.
    package var origin: OriginAuthority
    /// Connections open or being opened, idle ones included.
    package var connections: Int
    /// Idle connections.
    package var idle: Int
    /// Requests that wait for a connection.
    package var waiting: Int
    /// The state of the circuit.
    package var circuit: CircuitBreaker.State
    /// Failures that count towards opening the circuit, or that opened it.
    package var failures: Int
    /// Time until the next trial; `nil` if the circuit is not open.
    package var retryAfter: Interval?
    /// The requests to the origin and their outcomes.
    package var traffic = OriginTraffic()

    /// True if the circuit is open, or only a trial tells whether the origin works.
    package var isCircuitOpen: Bool { circuit != .closed }

    /// True if the circuit is open, or a request of the last minute was served badly or not at all.
    func isFaulty(now: Instant) -> Bool {
        isCircuitOpen || traffic.outcomes(slots: 6, now: now).bad > 0
    }

    /// Returns the statuses in `listed` with their traffic, and those of all other origins in
    /// `traffic`, in no particular order.
    static func merged(_ listed: [OriginStatus], _ traffic: OriginTrafficTable) -> [OriginStatus] {
        let known = Set(listed.map(\.origin.withoutTrust))
        let others = traffic.origins.keys.filter { !known.contains($0) }.map {
            OriginStatus(
                origin: $0, connections: 0, idle: 0, waiting: 0, circuit: .closed, failures: 0)
        }
        return (listed + others).map { status in
            var status = status
            status.traffic = traffic[status.origin]
            return status
        }
    }

    /// Returns true if `one` is listed before `other`: by name, then those that the operator named.
    static func precedes(_ one: OriginStatus, _ other: OriginStatus) -> Bool {
        let (text, otherText) = (one.origin.description, other.origin.description)
        guard text == otherText else { return text < otherText }
        return !one.origin.isOperatorConfigured && other.origin.isOperatorConfigured
    }
}

/// Totals over all origins.
package struct OriginStatistics: Hashable, Sendable {
    /// Connections open or being opened, idle ones included.
    package var connections = 0
    /// Idle connections.
    package var idle = 0
    /// Requests that wait for a connection.
    package var waiting = 0
    /// Circuits that are not closed.
    package var circuitsOpen = 0
    /// Circuits opened since the start.
    package var circuitOpenings: UInt64 = 0
    /// Responses that were followed by bytes beyond their end, each of which ended its connection.
    package var overruns: UInt64 = 0
    /// Names in the resolution cache.
    package var cachedNames = 0
}

extension OriginAdmission {
    /// Returns the status of every origin that has state, sorted by name.
    package func statuses(now: Instant) -> [OriginStatus] {
        unsortedStatuses(now: now).sorted(by: OriginStatus.precedes)
    }

    /// Returns the status of every origin that has state, in no particular order.
    func unsortedStatuses(now: Instant) -> [OriginStatus] {
        origins.map { authority, origin in
            var retryAfter: Interval?
            if case .open(let until) = origin.circuit.state {
                retryAfter = max(.zero, until - now)
            }
            return OriginStatus(
                origin: authority, connections: origin.openConnections,
                idle: origin.idleByLoop.values.reduce(0, +), waiting: origin.queue.count,
                circuit: origin.circuit.state, failures: origin.circuit.failures,
                retryAfter: retryAfter)
        }
    }

    var statistics: OriginStatistics {
        var figures = OriginStatistics(circuitOpenings: circuitOpenings)
        for origin in origins.values {
            figures.connections += origin.openConnections
            figures.idle += origin.idleByLoop.values.reduce(0, +)
            figures.waiting += origin.queue.count
            if origin.circuit.state != .closed { figures.circuitsOpen += 1 }
        }
        return figures
    }
}

/// The requests to one origin: counts since it is known, the outcomes of the last minute, and the
/// last failure.
package struct OriginTraffic: Hashable, Sendable {
    /// A failed request.
    package struct Failure: Hashable, Sendable {
        /// The metric of the reason, one of ``OriginMetrics/failures``.
        package let metric: Metric
        /// The failure as a clause.
        package let detail: String
        /// When the request ended.
        package let at: Instant
    }

    /// The outcomes of a period.
    package struct Outcomes: Hashable, Sendable {
        /// Requests that have ended with a complete response.
        package var complete = 0
        /// Requests that have failed; not those for which no connection was tried.
        package var failed = 0
        /// Responses with a status of 500 or above.
        package var serverErrors = 0
        /// Requests refused because the circuit was open.
        package var refused = 0

        /// Creates an empty period.
        package init() {}

        /// The requests that the origin served badly or not at all.
        package var bad: Int { failed + serverErrors + refused }
        /// All requests.
        package var all: Int { complete + failed + refused }
    }

    /// The end of a request.
    package enum Ending {
        /// The response is complete.
        case complete
        /// There is no complete response.
        case failed(OriginFailure)
        /// Nobody waited for the rest.
        case abandoned
    }

    /// Requests that have ended, complete or failed.
    package private(set) var fetches: UInt64 = 0
    /// Requests that have failed.
    package private(set) var failed: UInt64 = 0
    /// Body bytes received by requests that have ended.
    package private(set) var receivedBytes: UInt64 = 0
    /// Failed requests by the metric of the reason, one of ``OriginMetrics/failures``.
    package private(set) var failures: [Metric: UInt64] = [:]
    /// The last failure that concerned the origin; refusals by limits and by the circuit, which
    /// have no cause of their own, leave it unchanged.
    package private(set) var lastFailure: Failure?
    /// When the last request ended.
    private(set) var lastUse = Instant.zero
    /// The outcomes of the slots up to `newestSlot`, at the index of its number modulo the count.
    private var slots = [Outcomes](repeating: Outcomes(), count: Self.slotsCount)
    private var newestSlot: Int64 = 0

    /// The length of a slot.
    private static let slotLength = Interval.seconds(10)
    /// A minute, and the slot in progress.
    private static let slotsCount = 7
    /// Maximum length of a failure's text, in bytes: names and reasons come from outside.
    private static let detailBytesMax = 240

    /// Creates a record without requests.
    package init() {}

    /// Records the end of a request.
    ///
    /// - Parameters:
    ///   - ending: how the request ended.
    ///   - status: the status of the response; `nil` if none was received.
    ///   - bodyBytes: the bytes of the body that were received.
    ///   - now: the boot clock.
    package mutating func record(
        _ ending: Ending, status: UInt16? = nil, bodyBytes: UInt64 = 0, now: Instant
    ) {
        lastUse = now
        receivedBytes &+= bodyBytes
        let slot = slot(at: now)
        if let status, status >= 500 { slots[slot].serverErrors += 1 }
        switch ending {
        case .complete:
            fetches &+= 1
            slots[slot].complete += 1
        case .failed(let failure):
            fetches &+= 1
            failed &+= 1
            failures[failure.metric, default: 0] &+= 1
            guard failure.concernsOrigin else { break }
            slots[slot].failed += 1
            let detail = String(
                decoding: "\(failure)".utf8.prefix(Self.detailBytesMax), as: UTF8.self)
            lastFailure = Failure(metric: failure.metric, detail: detail, at: now)
        // The origin responded; that nobody waited for the rest says nothing about it.
        case .abandoned: if status != nil { slots[slot].complete += 1 }
        }
    }

    /// Records a request that was refused because the circuit is open.
    package mutating func recordRefusal(now: Instant) {
        lastUse = now
        slots[slot(at: now)].refused += 1
    }

    /// Forgets the outcomes of the last minute, because the origin has recovered.
    package mutating func forgetOutcomes() {
        for index in slots.indices { slots[index] = Outcomes() }
    }

    /// Returns the outcomes of the last complete slots, `count` of them, and of the one in
    /// progress.
    package func outcomes(slots count: Int, now: Instant) -> Outcomes {
        let newest = now.nanoseconds / Self.slotLength.nanoseconds
        var sum = Outcomes()
        for number in max(0, newest - Int64(count))...newest
        where number <= newestSlot && number > newestSlot - Int64(Self.slotsCount) {
            let slot = slots[Int(number % Int64(Self.slotsCount))]
            sum.complete += slot.complete
            sum.failed += slot.failed
            sum.serverErrors += slot.serverErrors
            sum.refused += slot.refused
        }
        return sum
    }

    /// Returns the index of the slot in progress, after clearing those that have begun since.
    private mutating func slot(at now: Instant) -> Int {
        let number = now.nanoseconds / Self.slotLength.nanoseconds
        if number > newestSlot {
            for begun in max(newestSlot + 1, number - Int64(Self.slotsCount) + 1)...number {
                slots[Int(begun % Int64(Self.slotsCount))] = Outcomes()
            }
            newestSlot = number
        }
        return Int(max(0, number) % Int64(Self.slotsCount))
    }
}

/// The traffic of the known origins; bounded.
///
/// Origins are distinguished by host, port, scheme and by whether the operator has named them. Of
/// too many origins, those that were used least recently are forgotten; of those that the operator
/// has named, only if there are no others, because clients may name any number.
package struct OriginTrafficTable: Sendable {
    /// The traffic by origin, without trust stores.
    package private(set) var origins: [OriginAuthority: OriginTraffic] = [:]
    /// Maximum number of origins.
    package static let originsMax = 1000

    /// Creates an empty table.
    package init() {}

    /// The traffic of an origin; empty for an unknown one.
    package subscript(origin: OriginAuthority) -> OriginTraffic {
        origins[origin.withoutTrust] ?? OriginTraffic()
    }

    /// Changes the traffic of an origin, which becomes known.
    package mutating func update(
        _ origin: OriginAuthority, _ change: (inout OriginTraffic) -> Void
    ) {
        change(&origins[origin.withoutTrust, default: OriginTraffic()])
        guard origins.count > Self.originsMax else { return }
        let order = origins.sorted { one, other in
            let (first, second) = (one.key.isOperatorConfigured, other.key.isOperatorConfigured)
            return first == second ? one.value.lastUse < other.value.lastUse : second
        }
        for (name, _) in order.prefix(Self.originsMax / 10) { origins[name] = nil }
    }

    /// Forgets the outcomes of the last minute of an origin; without effect for an unknown one.
    mutating func forgetOutcomes(_ origin: OriginAuthority) {
        origins[origin.withoutTrust]?.forgetOutcomes()
    }
}

extension OriginAuthority {
    /// A copy of this authority without its trust store.
    var withoutTrust: OriginAuthority {
        var copy = self
        copy.trustStore = nil
        return copy
    }
}

extension OriginFailure {
    /// The metric of the failure's cause, one of ``OriginMetrics/failures``.
    package var metric: Metric {
        switch self {
        case .originNotAllowed, .addressRefused: .originFailuresNotAllowed
        case .nameNotFound, .resolverFailed: .originFailuresName
        case .connectFailed: .originFailuresConnect
        case .tls: .originFailuresTLS
        case .timedOut: .originFailuresTimeout
        case .closedBeforeResponse, .truncated, .reset, .closedWithoutNotify: .originFailuresBroken
        case .http2, .contentLengthExceeded, .malformed, .headTooLarge, .tooManyInterimResponses:
            .originFailuresProtocol
        case .bodyTooLarge: .originFailuresTooLarge
        case .tooManyRedirects, .redirectLoop, .redirectRefused: .originFailuresRedirects
        case .redirected(_, let failure): failure.metric
        case .circuitOpen: .originFailuresCircuit
        case .overloaded: .originFailuresLimit
        case .shuttingDown: .originFailuresStopping
        }
    }

    /// True if the failure shows something about the origin: it was contacted, or tried.
    fileprivate var concernsOrigin: Bool {
        switch underlying {
        case .originNotAllowed, .addressRefused, .circuitOpen, .overloaded, .shuttingDown: false
        default: true
        }
    }

    /// True if no origin is to be known only because of this failure: its name comes from a client
    /// that may not use it.
    var isAnonymous: Bool {
        switch underlying {
        case .originNotAllowed, .addressRefused, .shuttingDown: true
        default: false
        }
    }
}
