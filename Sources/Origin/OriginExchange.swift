package import Ground
import NIOCore
import Synchronization
package import Wire

/// What the origin clients of all loops of a node share: the places that each origin has, its
/// circuit, and what is known of names.
///
/// Every call is: lock, step the value, unlock, tell the loops. A loop is told by a task of its
/// own, never from within a call.
package final class OriginExchange: Sendable {
    private struct State: Sendable {
        var gate: OriginGate
        var names: NameCache
        /// How TLS failed with an origin last.
        var tlsFailures: [OriginAuthority: TLSFailure] = [:]
        /// Those of which it was said that they send more than an answer.
        var overrunning: Set<OriginAuthority> = []
        var overruns: UInt64 = 0
    }

    private let state: Mutex<State>
    private let members = Mutex<[Member]>([])
    private let report: @Sendable (OriginEvent) -> Void

    /// A client and its loop.
    struct Member: Sendable {
        let loop: any EventLoop
        let client: Reference
    }

    /// Read on the client's loop only.
    struct Reference: @unchecked Sendable {
        weak var client: OriginClient?
    }

    /// An exchange without members.
    ///
    /// - Parameters:
    ///   - settings: the limits that are of the node and not of a loop.
    ///   - report: told, on any thread, what belongs into a log.
    package init(
        _ settings: OriginSettings, report: @escaping @Sendable (OriginEvent) -> Void = { _ in }
    ) {
        state = Mutex(
            State(
                gate: OriginGate(settings: settings.gate),
                names: NameCache(settings: settings.names)))
        self.report = report
    }

    /// From now on other limits hold.
    package func adopt(_ settings: OriginSettings) {
        let news = state.withLock { state in
            state.names.settings = settings.names
            return state.gate.settings == settings.gate ? [] : state.gate.adopt(settings.gate)
        }
        tell(news)
    }

    /// What every origin has in use and how its circuit stands, in the order of their names; only
    /// those of which there is something to say.
    package func standings(now: Instant) -> [OriginStanding] {
        state.withLock { $0.gate.standings(now: now) }
    }

    /// Numbers for metrics.
    package var figures: OriginFigures {
        state.withLock { state in
            var figures = state.gate.figures
            figures.names = state.names.count
            figures.overruns = state.overruns
            return figures
        }
    }

    /// Takes in a client; gives the number of its loop here.
    func join(_ client: OriginClient, on loop: any EventLoop) -> Int {
        members.withLock { members in
            members.append(Member(loop: loop, client: Reference(client: client)))
            return members.count - 1
        }
    }
}

// MARK: - Places and circuits

extension OriginExchange {
    func pause(at origin: OriginAuthority, now: Instant) -> Interval? {
        state.withLock { $0.gate.pause(at: origin, now: now) }
    }

    func arrived(
        _ ticket: OriginGate.Ticket, for holders: [ShareHolder], at origin: OriginAuthority,
        mayJoin: Bool, now: Instant
    ) -> OriginGate.Admission {
        let admission = state.withLock {
            $0.gate.arrived(ticket, for: holders, at: origin, mayJoin: mayJoin, now: now)
        }
        if case .wait(closingIdleOn: let loop?) = admission {
            tell(loop) { $0.closeIdleWanted(to: origin) }
        }
        return admission
    }

    func joined(_ ticket: OriginGate.Ticket, _ origin: OriginAuthority) -> Bool {
        state.withLock { $0.gate.joined(ticket, origin) }
    }

    func left(_ ticket: OriginGate.Ticket, _ origin: OriginAuthority) {
        state.withLock { $0.gate.left(ticket, origin) }
    }

    func answered(_ origin: OriginAuthority) {
        let change = state.withLock { $0.gate.answered(origin) }
        if let change { report(.circuit(origin, change)) }
    }

    func ended(
        _ ticket: OriginGate.Ticket, _ origin: OriginAuthority, _ outcome: OriginGate.Outcome,
        now: Instant, releases: Bool
    ) {
        let (change, news) = state.withLock {
            $0.gate.ended(ticket, origin, outcome, now: now, releases: releases)
        }
        if let change { report(.circuit(origin, change)) }
        tell(news)
    }

    func isContended(_ origin: OriginAuthority) -> Bool {
        state.withLock { $0.gate.isContended(origin) }
    }

    func opened(_ origin: OriginAuthority) {
        state.withLock { $0.gate.opened(origin) }
    }

    func released(_ origin: OriginAuthority, on loop: Int) -> OriginGate.Release {
        state.withLock { $0.gate.released(origin, on: loop) }
    }

    func idleEnded(_ origin: OriginAuthority, on loop: Int) {
        state.withLock { $0.gate.idleEnded(origin, on: loop) }
    }

    func closed(_ origin: OriginAuthority, wasAskedFor: Bool = false) {
        let news = state.withLock { $0.gate.closed(origin, wasAskedFor: wasAskedFor) }
        if let news { tell([news]) }
    }

    func nothingClosed(_ origin: OriginAuthority) {
        state.withLock { $0.gate.nothingClosed(origin) }
    }

    private func tell(_ news: [OriginGate.News]) {
        for item in news {
            switch item {
            case .granted(let ticket, let origin):
                tell(ticket.loop) { $0.granted(ticket.fetch, at: origin) }
            case .refused(let ticket, let retryAfter):
                tell(ticket.loop) { $0.circuitOpened(ticket.fetch, retryAfter: retryAfter) }
            }
        }
    }

    private func tell(_ number: Int, _ message: @escaping @Sendable (OriginClient) -> Void) {
        let member = members.withLock { $0[number] }
        member.loop.execute {
            if let client = member.client.client { message(client) }
        }
    }
}

// MARK: - Bytes behind an answer

extension OriginExchange {
    /// An origin sent bytes behind an answer of HTTP/1.1; counted each time, said once.
    func overran(_ origin: OriginAuthority) {
        let isNew = state.withLock { state in
            state.overruns += 1
            if state.overrunning.count >= Self.remembersMax { state.overrunning = [] }
            return state.overrunning.insert(origin).inserted
        }
        if isNew { report(.overran(origin)) }
    }
}

// MARK: - TLS

extension OriginExchange {
    /// TLS with an origin failed; said once, until it succeeds or fails for another reason.
    func failed(_ origin: OriginAuthority, _ failure: TLSFailure) {
        let isNew = state.withLock { state in
            if state.tlsFailures[origin] == failure { return false }
            if state.tlsFailures.count >= Self.remembersMax { state.tlsFailures = [:] }
            state.tlsFailures[origin] = failure
            return true
        }
        if isNew { report(.tlsFailed(origin, failure)) }
    }

    /// TLS with an origin was agreed on.
    func secured(_ origin: OriginAuthority) {
        let failed = state.withLock { state in
            state.tlsFailures.isEmpty ? nil : state.tlsFailures.removeValue(forKey: origin)
        }
        if failed != nil { report(.tlsSucceeded(origin)) }
    }

    /// Origins of which it is remembered how TLS failed, or that they sent too much.
    private static let remembersMax = 1000
}

// MARK: - Names

extension OriginExchange {
    func known(_ host: String, now: Instant) -> NameCache.Answer? {
        state.withLock { $0.names.find(host, now: now) }
    }

    func lastKnown(_ host: String, now: Instant) -> [IPAddress]? {
        state.withLock { $0.names.lastKnown(host, now: now) }
    }

    /// Takes in what the resolver said; gives what is to be used, which is what was known before
    /// if it said nothing.
    func learned(
        _ result: Result<[IPAddress], ResolveFailure>, of host: String, now: Instant
    ) -> Result<[IPAddress], ResolveFailure> {
        typealias Learned = (use: Result<[IPAddress], ResolveFailure>, isFallback: Bool)
        let (use, isFallback) = state.withLock { state -> Learned in
            switch result {
            case .success(let addresses):
                state.names.found(addresses, of: host, now: now)
            case .failure(.nameNotFound):
                state.names.notFound(host, now: now)
            case .failure(.failed(let reason)):
                if let known = state.names.unanswered(host, reason: reason, now: now) {
                    return (.success(known), true)
                }
            }
            return (result, false)
        }
        if isFallback, case .failure(.failed(let reason)) = result {
            report(.lookUpFailed(host, reason: reason))
        }
        return use
    }

    func distrust(_ host: String, now: Instant) {
        state.withLock { $0.names.distrust(host, now: now) }
    }
}

/// What an ``OriginExchange`` has for the log.
package enum OriginEvent: Hashable, Sendable {
    case circuit(OriginAuthority, OriginGate.Change)
    /// No TLS connection is made to the origin; said once for a reason.
    case tlsFailed(OriginAuthority, TLSFailure)
    case tlsSucceeded(OriginAuthority)
    /// More came with an answer than its length says; said once for the origin.
    case overran(OriginAuthority)
    /// The resolver gave no answer, and what was known before is used.
    case lookUpFailed(String, reason: String)
}
