import Ground
import HTTPRules
import Serving
import Store
import Wire

/// How an answer came about, told to who knows the operator's token.
extension Door {
    /// The field of a request that holds the token, and of an answer that tells.
    private static let decisionName = "nuthatch-decision"

    /// Nothing of the last request's site is left.
    func forgetSite() {
        siteCounters = nil
        tellsDecision = false
    }

    /// True if the request that the parser holds has the token.
    func asksForDecision(_ bytes: Span<UInt8>) -> Bool {
        guard let token = settings.decisionToken else { return false }
        for index in 0..<parser.fields.count {
            let line = parser.fields[index]
            guard isDecision(line, in: bytes) else { continue }
            return Self.isSame(bytes.copy(line.value.range), token)
        }
        return false
    }

    /// The lines of a request that are for others than this node.
    func withoutToken(_ pending: PendingRequest) -> [FieldLine] {
        guard settings.decisionToken != nil else { return pending.lines }
        let bytes = pending.head.span
        return pending.lines.filter { !isDecision($0, in: bytes) }
    }

    private func isDecision(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        line.id == .other && bytes.holdsIgnoringCase(Self.decisionName, at: line.name.range)
    }

    /// Takes as long whichever byte is wrong.
    private static func isSame(_ given: [UInt8], _ token: [UInt8]) -> Bool {
        var difference: UInt8 = given.count == token.count ? 0 : 1
        for index in token.indices {
            difference |= token[index] ^ (index < given.count ? given[index] : 0)
        }
        return difference == 0
    }

    /// Puts what memory has for `query` into the answer's lines.
    func tellDecision(of query: SiteRequest, _ finding: SiteFinding, now: Instant) {
        var decision = Decision()
        decision.key = query.key
        switch finding {
        case .answer(let resident, let reuse):
            decision.describe(resident, now: now)
            if resident.headStart != query.key.count {
                decision.variantKey = Array(resident.key.dropFirst(query.key.count))
                decision.variantNames = query.expected(in: hall.store)
            }
            (decision.verdict, decision.reason) = reuse.words
        case .passes: (decision.verdict, decision.reason) = ("pass", "answers-not-stored")
        case .absent(let expected):
            decision.variantNames = expected
            (decision.verdict, decision.reason) = ("fetch", expected.isEmpty ? "miss" : "vary-miss")
        }
        set(decision)
    }

    /// Adds what was decided of an answer of the origin's.
    func tellDecision(of query: SiteRequest, _ examination: Examination, isKept: Bool) {
        guard tellsDecision else { return }
        var decision = Decision()
        decision.key = query.key
        decision.verdict = "fetch"
        decision.lifetimeSeconds = examination.freshness.lifetime.seconds
        decision.lifetimeSource = examination.freshness.source.word
        decision.controlField = examination.controlSource.word
        decision.staleWhileRevalidateSeconds = Int64(examination.staleWhileRevalidateSeconds)
        decision.staleIfErrorSeconds = Int64(examination.staleIfErrorSeconds)
        decision.isStored = isKept
        decision.storingReason =
            examination.notStored?.word ?? (isKept ? "allowed" : "no-room")
        set(decision)
    }

    private func set(_ decision: Decision) {
        // What was decided later says more.
        extraLines = Array("Nuthatch-Decision: ".utf8)
        decision.append(to: &extraLines)
        extraLines += Array("\r\n".utf8)
    }
}

extension Decision {
    /// What is known of a stored answer.
    fileprivate mutating func describe(_ resident: Resident, now: Instant) {
        let facts = resident.facts
        ageSeconds = (now - facts.bornAt).seconds
        lifetimeSeconds = (facts.freshUntil - facts.bornAt).seconds
        staleWhileRevalidateSeconds = Int64(facts.staleWhileRevalidateSeconds)
        staleIfErrorSeconds = Int64(facts.staleIfErrorSeconds)
        tags = resident.tags
        isStored = true
        if facts.flags.contains(.noCache) { marks.append("no-cache") }
        if facts.flags.contains(.mustRevalidate) { marks.append("must-revalidate") }
        if facts.flags.contains(.immutable) { marks.append("immutable") }
        if facts.flags.contains(.sharesAuthorized) { marks.append("shares-authorized") }
    }
}

extension Reuse {
    /// What was decided, and why if that does not say it.
    fileprivate var words: (String, String?) {
        switch self {
        case .fresh: ("hit", nil)
        case .stale(.maxStale): ("hit-stale", "max-stale")
        case .stale(.whileRevalidate): ("hit-stale", "stale-while-revalidate")
        case .validate(.stale): ("validate", "stale")
        case .validate(.noCache): ("validate", "no-cache")
        case .validate(.requestNoCache): ("validate", "request-no-cache")
        case .validate(.requestMaxAge): ("validate", "request-max-age")
        case .validate(.requestMinFresh): ("validate", "request-min-fresh")
        case .unusable: ("pass", "authorization")
        }
    }
}
