package import Ground
import NIOCore
import Synchronization
package import Wire

/// The state that the origin clients of all event loops share: slots per origin, circuits, and
/// resolved names.
///
/// Every call locks, steps the value, unlocks, then notifies the loops. Notifications run as
/// separate tasks on their loops, never within the call. Thread-safe.
package final class OriginCoordinator: Sendable {
    private struct State: Sendable {
        var admission: OriginAdmission
        var dnsCache: DNSCache
        var traffic = OriginTrafficTable()
        /// The last TLS failure of each origin.
        var tlsFailures: [OriginAuthority: TLSFailure] = [:]
        /// Origins whose overrun has been reported.
        var overrunOrigins: Set<OriginAuthority> = []
        var overruns: UInt64 = 0
    }

    private let state: Mutex<State>
    private let clients = Mutex<[RegisteredClient]>([])
    private let eventHandler: @Sendable (OriginEvent) -> Void

    /// An origin client and its loop.
    struct RegisteredClient: Sendable {
        let loop: any EventLoop
        let client: WeakClient
    }

    /// A weak reference that is read on the client's loop only.
    struct WeakClient: @unchecked Sendable {
        weak var client: OriginClient?
    }

    /// Creates a coordinator without clients.
    ///
    /// - Parameters:
    ///   - settings: the node-wide limits.
    ///   - eventHandler: receives events for the log, on any thread.
    package init(
        _ settings: OriginSettings,
        eventHandler: @escaping @Sendable (OriginEvent) -> Void = { _ in }
    ) {
        state = Mutex(
            State(
                admission: OriginAdmission(settings: settings.admission),
                dnsCache: DNSCache(settings: settings.dnsCache)))
        self.eventHandler = eventHandler
    }

    /// Adopts other limits; requests that get a slot by that are notified.
    package func reconfigure(_ settings: OriginSettings) {
        let updates = state.withLock { state in
            state.dnsCache.settings = settings.dnsCache
            return state.admission.settings == settings.admission
                ? [] : state.admission.reconfigure(settings.admission)
        }
        notify(updates)
    }

    /// Returns the status of every origin with connections, waiting requests, a failure history or
    /// recorded traffic, sorted by name.
    package func statuses(now: Instant) -> [OriginStatus] {
        unsortedStatuses(now: now).sorted(by: OriginStatus.precedes)
    }

    /// Returns the status of every origin whose circuit is open, or of whose requests of the last
    /// minute one was served badly, in no particular order; cheap enough to be called periodically.
    package func faultyStatuses(now: Instant) -> [OriginStatus] {
        unsortedStatuses(now: now).filter { $0.isFaulty(now: now) }
    }

    private func unsortedStatuses(now: Instant) -> [OriginStatus] {
        let (listed, traffic) = state.withLock {
            ($0.admission.unsortedStatuses(now: now), $0.traffic)
        }
        return OriginStatus.merged(listed, traffic)
    }

    /// Totals over all origins, for metrics.
    package var statistics: OriginStatistics {
        state.withLock { state in
            var figures = state.admission.statistics
            figures.cachedNames = state.dnsCache.count
            figures.overruns = state.overruns
            return figures
        }
    }

    /// Registers a client; returns the number of its loop.
    func register(_ client: OriginClient, on loop: any EventLoop) -> Int {
        clients.withLock { members in
            members.append(RegisteredClient(loop: loop, client: WeakClient(client: client)))
            return members.count - 1
        }
    }
}

// MARK: - Slots and circuits

extension OriginCoordinator {
    /// Returns the time for which the open circuit of an origin refuses a fetch, and counts the
    /// refusal; `nil` if it is not refused.
    func refusal(by origin: OriginAuthority, now: Instant) -> Interval? {
        state.withLock { state in
            let rest = state.admission.remainingOpenInterval(at: origin, now: now)
            if rest != nil { state.traffic.update(origin) { $0.recordRefusal(now: now) } }
            return rest
        }
    }

    /// Decides how a transaction gets a connection; if it has to wait, a loop may be told to close
    /// an idle one.
    func requestAdmission(
        _ id: OriginAdmission.TransactionID, for holders: [QuotaHolder],
        at origin: OriginAuthority,
        mayJoin: Bool, now: Instant
    ) -> OriginAdmission.Admission {
        let admission = state.withLock {
            $0.admission.requestAdmission(
                id, for: holders, at: origin, mayJoin: mayJoin, now: now)
        }
        if case .wait(closingIdleOnLoop: let loop?) = admission {
            notify(loop) { $0.closeIdleConnection(to: origin) }
        }
        return admission
    }

    /// Removes a waiting transaction from the queue because a shared connection of its loop has
    /// capacity; false if it must keep waiting, or does not wait.
    func leaveQueueForShared(_ id: OriginAdmission.TransactionID, _ origin: OriginAuthority)
        -> Bool
    {
        state.withLock { $0.admission.leaveQueueForShared(id, origin) }
    }

    /// Removes a transaction that gives up from the queue.
    func requestCancelled(_ id: OriginAdmission.TransactionID, _ origin: OriginAuthority) {
        state.withLock { $0.admission.requestCancelled(id, origin) }
    }

    /// Records that a response head arrived, and reports if this closes the circuit.
    func responseReceived(_ origin: OriginAuthority) {
        let change = state.withLock { state in
            let change = state.admission.responseReceived(origin)
            if change != nil { state.traffic.forgetOutcomes(origin) }
            return change
        }
        if let change { eventHandler(.circuitChanged(origin, change)) }
    }

    /// Records the end of an admitted transaction, reports a change of the circuit, and notifies
    /// waiting transactions; `record`, if it is not `nil`, receives the traffic of the origin.
    func transactionEnded(
        _ id: OriginAdmission.TransactionID, _ origin: OriginAuthority,
        _ outcome: OriginAdmission.Outcome,
        now: Instant, releases: Bool, _ record: ((inout OriginTraffic) -> Void)? = nil
    ) {
        let (change, updates) = state.withLock { state in
            if let record { state.traffic.update(origin, record) }
            return state.admission.transactionEnded(
                id, origin, outcome, now: now, releases: releases)
        }
        if let change { eventHandler(.circuitChanged(origin, change)) }
        notify(updates)
    }

    /// Records the end of a transaction that was not admitted; `record` receives the traffic of the
    /// origin.
    func transactionRefused(_ origin: OriginAuthority, _ record: (inout OriginTraffic) -> Void) {
        state.withLock { $0.traffic.update(origin, record) }
    }

    /// Returns true if requests of any loop wait for a connection to the origin.
    func isContended(_ origin: OriginAuthority) -> Bool {
        state.withLock { $0.admission.isContended(origin) }
    }

    /// Counts a slot that was not requested: for a further attempt, or in place of a connection
    /// that was closed.
    func connectionOpened(_ origin: OriginAuthority) {
        state.withLock { $0.admission.connectionOpened(origin) }
    }

    /// Decides what happens to a connection that may carry another response.
    func connectionReleased(_ origin: OriginAuthority, on loop: Int)
        -> OriginAdmission.ReleaseDecision
    {
        state.withLock { $0.admission.connectionReleased(origin, on: loop) }
    }

    /// Stops counting an idle connection that its loop closes on its own account.
    func idleConnectionClosed(_ origin: OriginAuthority, on loop: Int) {
        state.withLock { $0.admission.idleConnectionClosed(origin, on: loop) }
    }

    /// Records that a connection is closed or a slot was not used, and notifies the transaction
    /// that gets the slot.
    func connectionClosed(_ origin: OriginAuthority, wasRequested: Bool = false) {
        let updates = state.withLock {
            $0.admission.connectionClosed(origin, wasRequested: wasRequested)
        }
        if let updates { notify([updates]) }
    }

    /// Records that a loop had no idle connection left to close on request.
    func noIdleConnectionClosed(_ origin: OriginAuthority) {
        state.withLock { $0.admission.noIdleConnectionClosed(origin) }
    }

    /// Notifies the loops of the transactions that waited.
    private func notify(_ updates: [OriginAdmission.Update]) {
        for item in updates {
            switch item {
            case .granted(let id, let origin):
                notify(id.loop) { $0.slotGranted(id.transaction, at: origin) }
            case .refused(let id, let retryAfter):
                notify(id.loop) { $0.circuitOpened(id.transaction, retryAfter: retryAfter) }
            }
        }
    }

    /// Runs `message` with the client of a loop, soon and on that loop; does nothing if the client
    /// is gone.
    private func notify(_ number: Int, _ message: @escaping @Sendable (OriginClient) -> Void) {
        let member = clients.withLock { $0[number] }
        member.loop.execute {
            if let client = member.client.client { message(client) }
        }
    }
}

// MARK: - Bytes after a response

extension OriginCoordinator {
    /// Records that an origin sent bytes after an HTTP/1.1 response; counted every time, reported
    /// once per origin.
    func recordOverrun(_ origin: OriginAuthority) {
        let isNew = state.withLock { state in
            state.overruns += 1
            if state.overrunOrigins.count >= Self.rememberedOriginsMax { state.overrunOrigins = [] }
            return state.overrunOrigins.insert(origin).inserted
        }
        if isNew { eventHandler(.responseOverran(origin)) }
    }
}

// MARK: - TLS

extension OriginCoordinator {
    /// Records a TLS failure; reported once, until TLS succeeds or fails for another reason.
    func tlsFailed(_ origin: OriginAuthority, _ failure: TLSFailure) {
        let isNew = state.withLock { state in
            if state.tlsFailures[origin] == failure { return false }
            if state.tlsFailures.count >= Self.rememberedOriginsMax { state.tlsFailures = [:] }
            state.tlsFailures[origin] = failure
            return true
        }
        if isNew { eventHandler(.tlsFailed(origin, failure)) }
    }

    /// Forgets the TLS failure of an origin after a successful handshake, and reports that if there
    /// was one.
    func tlsSucceeded(_ origin: OriginAuthority) {
        let failed = state.withLock { state in
            state.tlsFailures.isEmpty ? nil : state.tlsFailures.removeValue(forKey: origin)
        }
        if failed != nil { eventHandler(.tlsSucceeded(origin)) }
    }

    /// Maximum number of origins whose TLS failure, or whose overrun, is remembered.
    private static let rememberedOriginsMax = 1000
}

// MARK: - Names

extension OriginCoordinator {
    /// Returns the unexpired resolution of a name; `nil` if a query is needed.
    func cachedResolution(_ host: String, now: Instant) -> DNSCache.Resolution? {
        state.withLock { $0.dnsCache.lookup(host, now: now) }
    }

    /// Returns the last known addresses of a name, unless they expired more than a day ago.
    func staleAddresses(_ host: String, now: Instant) -> [IPAddress]? {
        state.withLock { $0.dnsCache.staleAddresses(host, now: now) }
    }

    /// Records what the resolver returned for `host`; returns the result to use.
    ///
    /// If the resolver failed, that is the last known addresses, if there are any.
    func recordResolution(
        _ result: Result<[IPAddress], ResolveFailure>, of host: String, now: Instant
    ) -> Result<[IPAddress], ResolveFailure> {
        typealias Learned = (use: Result<[IPAddress], ResolveFailure>, isFallback: Bool)
        let (use, isFallback) = state.withLock { state -> Learned in
            switch result {
            case .success(let addresses):
                state.dnsCache.storeAddresses(addresses, of: host, now: now)
            case .failure(.nameNotFound):
                state.dnsCache.storeNotFound(host, now: now)
            case .failure(.failed(let reason)):
                if let known = state.dnsCache.storeFailure(host, reason: reason, now: now) {
                    return (.success(known), true)
                }
            }
            return (result, false)
        }
        if isFallback, case .failure(.failed(let reason)) = result {
            eventHandler(.lookupFailed(host, reason: reason))
        }
        return use
    }

    /// Makes the next fetch resolve `host` again, because none of its addresses accepted a
    /// connection.
    func expireAddresses(_ host: String, now: Instant) {
        state.withLock { $0.dnsCache.expire(host, now: now) }
    }
}

/// An event that an ``OriginCoordinator`` reports for the log.
package enum OriginEvent: Hashable, Sendable {
    /// The circuit of an origin opened or closed.
    case circuitChanged(OriginAuthority, OriginAdmission.CircuitChange)
    /// TLS with the origin failed; reported once per reason.
    case tlsFailed(OriginAuthority, TLSFailure)
    /// TLS with the origin works again.
    case tlsSucceeded(OriginAuthority)
    /// A response was followed by more bytes than its framing allows; reported once per origin.
    case responseOverran(OriginAuthority)
    /// The resolver failed and the last known addresses are used.
    case lookupFailed(String, reason: String)
}
