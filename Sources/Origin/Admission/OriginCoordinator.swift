package import Ground
import NIOCore
import Synchronization
package import Wire

/// What the origin clients of all loops of a node share: the places that each origin has, its
/// circuit, and what is known of names.
///
/// Every call is: lock, step the value, unlock, tell the loops. A loop is told by a task of its
/// own, never from within a call.
package final class OriginCoordinator: Sendable {
    private struct State: Sendable {
        var admission: OriginAdmission
        var dnsCache: DNSCache
        /// How TLS failed with an origin last.
        var tlsFailures: [OriginAuthority: TLSFailure] = [:]
        /// Those of which it was said that they send more than an answer.
        var overrunOrigins: Set<OriginAuthority> = []
        var overruns: UInt64 = 0
    }

    private let state: Mutex<State>
    private let clients = Mutex<[RegisteredClient]>([])
    private let eventHandler: @Sendable (OriginEvent) -> Void

    /// A client and its loop.
    struct RegisteredClient: Sendable {
        let loop: any EventLoop
        let client: WeakClient
    }

    /// Read on the client's loop only.
    struct WeakClient: @unchecked Sendable {
        weak var client: OriginClient?
    }

    /// An exchange without members.
    ///
    /// - Parameters:
    ///   - settings: the limits that are of the node and not of a loop.
    ///   - eventHandler: told, on any thread, what belongs into a log.
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

    /// From now on other limits hold.
    package func reconfigure(_ settings: OriginSettings) {
        let news = state.withLock { state in
            state.dnsCache.settings = settings.dnsCache
            return state.admission.settings == settings.admission
                ? [] : state.admission.reconfigure(settings.admission)
        }
        notify(news)
    }

    /// What every origin has in use and how its circuit stands, in the order of their names; only
    /// those of which there is something to say.
    package func statuses(now: Instant) -> [OriginStatus] {
        state.withLock { $0.admission.statuses(now: now) }
    }

    /// Numbers for metrics.
    package var statistics: OriginStatistics {
        state.withLock { state in
            var figures = state.admission.statistics
            figures.cachedNames = state.dnsCache.count
            figures.overruns = state.overruns
            return figures
        }
    }

    /// Takes in a client; gives the number of its loop here.
    func register(_ client: OriginClient, on loop: any EventLoop) -> Int {
        clients.withLock { members in
            members.append(RegisteredClient(loop: loop, client: WeakClient(client: client)))
            return members.count - 1
        }
    }
}

// MARK: - Places and circuits

extension OriginCoordinator {
    func remainingOpenInterval(at origin: OriginAuthority, now: Instant) -> Interval? {
        state.withLock { $0.admission.remainingOpenInterval(at: origin, now: now) }
    }

    func requestAdmission(
        _ ticket: OriginAdmission.TransactionID, for holders: [QuotaHolder],
        at origin: OriginAuthority,
        mayJoin: Bool, now: Instant
    ) -> OriginAdmission.Admission {
        let admission = state.withLock {
            $0.admission.requestAdmission(
                ticket, for: holders, at: origin, mayJoin: mayJoin, now: now)
        }
        if case .wait(closingIdleOnLoop: let loop?) = admission {
            notify(loop) { $0.closeIdleConnection(to: origin) }
        }
        return admission
    }

    func leaveQueueForShared(_ ticket: OriginAdmission.TransactionID, _ origin: OriginAuthority)
        -> Bool
    {
        state.withLock { $0.admission.leaveQueueForShared(ticket, origin) }
    }

    func requestCancelled(_ ticket: OriginAdmission.TransactionID, _ origin: OriginAuthority) {
        state.withLock { $0.admission.requestCancelled(ticket, origin) }
    }

    func responseReceived(_ origin: OriginAuthority) {
        let change = state.withLock { $0.admission.responseReceived(origin) }
        if let change { eventHandler(.circuitChanged(origin, change)) }
    }

    func transactionEnded(
        _ ticket: OriginAdmission.TransactionID, _ origin: OriginAuthority,
        _ outcome: OriginAdmission.Outcome,
        now: Instant, releases: Bool
    ) {
        let (change, news) = state.withLock {
            $0.admission.transactionEnded(ticket, origin, outcome, now: now, releases: releases)
        }
        if let change { eventHandler(.circuitChanged(origin, change)) }
        notify(news)
    }

    func isContended(_ origin: OriginAuthority) -> Bool {
        state.withLock { $0.admission.isContended(origin) }
    }

    func connectionOpened(_ origin: OriginAuthority) {
        state.withLock { $0.admission.connectionOpened(origin) }
    }

    func connectionReleased(_ origin: OriginAuthority, on loop: Int)
        -> OriginAdmission.ReleaseDecision
    {
        state.withLock { $0.admission.connectionReleased(origin, on: loop) }
    }

    func idleConnectionClosed(_ origin: OriginAuthority, on loop: Int) {
        state.withLock { $0.admission.idleConnectionClosed(origin, on: loop) }
    }

    func connectionClosed(_ origin: OriginAuthority, wasRequested: Bool = false) {
        let news = state.withLock {
            $0.admission.connectionClosed(origin, wasRequested: wasRequested)
        }
        if let news { notify([news]) }
    }

    func noIdleConnectionClosed(_ origin: OriginAuthority) {
        state.withLock { $0.admission.noIdleConnectionClosed(origin) }
    }

    private func notify(_ news: [OriginAdmission.Update]) {
        for item in news {
            switch item {
            case .granted(let ticket, let origin):
                notify(ticket.loop) { $0.slotGranted(ticket.transaction, at: origin) }
            case .refused(let ticket, let retryAfter):
                notify(ticket.loop) { $0.circuitOpened(ticket.transaction, retryAfter: retryAfter) }
            }
        }
    }

    private func notify(_ number: Int, _ message: @escaping @Sendable (OriginClient) -> Void) {
        let member = clients.withLock { $0[number] }
        member.loop.execute {
            if let client = member.client.client { message(client) }
        }
    }
}

// MARK: - Bytes behind an answer

extension OriginCoordinator {
    /// An origin sent bytes behind an answer of HTTP/1.1; counted each time, said once.
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
    /// TLS with an origin failed; said once, until it succeeds or fails for another reason.
    func tlsFailed(_ origin: OriginAuthority, _ failure: TLSFailure) {
        let isNew = state.withLock { state in
            if state.tlsFailures[origin] == failure { return false }
            if state.tlsFailures.count >= Self.rememberedOriginsMax { state.tlsFailures = [:] }
            state.tlsFailures[origin] = failure
            return true
        }
        if isNew { eventHandler(.tlsFailed(origin, failure)) }
    }

    /// TLS with an origin was agreed on.
    func tlsSucceeded(_ origin: OriginAuthority) {
        let failed = state.withLock { state in
            state.tlsFailures.isEmpty ? nil : state.tlsFailures.removeValue(forKey: origin)
        }
        if failed != nil { eventHandler(.tlsSucceeded(origin)) }
    }

    /// Origins of which it is remembered how TLS failed, or that they sent too much.
    private static let rememberedOriginsMax = 1000
}

// MARK: - Names

extension OriginCoordinator {
    func cachedResolution(_ host: String, now: Instant) -> DNSCache.Resolution? {
        state.withLock { $0.dnsCache.lookup(host, now: now) }
    }

    func staleAddresses(_ host: String, now: Instant) -> [IPAddress]? {
        state.withLock { $0.dnsCache.staleAddresses(host, now: now) }
    }

    /// Takes in what the resolver said; gives what is to be used, which is what was known before
    /// if it said nothing.
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

    func expireAddresses(_ host: String, now: Instant) {
        state.withLock { $0.dnsCache.expire(host, now: now) }
    }
}

/// What an ``OriginCoordinator`` has for the log.
package enum OriginEvent: Hashable, Sendable {
    case circuitChanged(OriginAuthority, OriginAdmission.CircuitChange)
    /// No TLS connection is made to the origin; said once for a reason.
    case tlsFailed(OriginAuthority, TLSFailure)
    case tlsSucceeded(OriginAuthority)
    /// More came with an answer than its length says; said once for the origin.
    case responseOverran(OriginAuthority)
    /// The resolver gave no answer, and what was known before is used.
    case lookupFailed(String, reason: String)
}
