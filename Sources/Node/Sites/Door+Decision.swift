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
            return bytes.copy(line.value.range).isSame(as: token)
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

    /// Puts what memory has for `query` into the answer's lines.
    func tellDecision(of query: SiteRequest, _ finding: SiteFinding, now: Instant) {
        set(Decision(of: query, finding, in: hall.store, now: now))
    }

    /// Adds what was decided of an answer of the origin's.
    func tellDecision(of query: SiteRequest, _ examination: Examination, isKept: Bool) {
        if tellsDecision { set(Decision(of: query, examination, isKept: isKept)) }
    }

    private func set(_ decision: Decision) {
        // What was decided later says more.
        extraLines = Array("Nuthatch-Decision: ".utf8)
        decision.append(to: &extraLines)
        extraLines += Array("\r\n".utf8)
    }
}

extension [UInt8] {
    /// Takes as long whichever byte is wrong.
    fileprivate func isSame(as token: [UInt8]) -> Bool {
        var difference: UInt8 = count == token.count ? 0 : 1
        for index in token.indices {
            difference |= token[index] ^ (index < count ? self[index] : 0)
        }
        return difference == 0
    }
}

extension Decision {
    /// What memory has for `query`.
    fileprivate init(
        of query: SiteRequest, _ finding: SiteFinding, in store: MemoryStore, now: Instant
    ) {
        self.init()
        key = query.key
        switch finding {
        case .answer(let resident, let reuse):
            describe(resident, now: now)
            if resident.headStart != query.key.count {
                variantKey = Array(resident.key.dropFirst(query.key.count))
                variantNames = query.expected(in: store)
            }
            (verdict, reason) = reuse.words
        case .passes: (verdict, reason) = ("pass", "answers-not-stored")
        case .absent(let expected):
            variantNames = expected
            (verdict, reason) = ("fetch", expected.isEmpty ? "miss" : "vary-miss")
        }
    }

    /// What was decided of an answer of the origin's.
    fileprivate init(of query: SiteRequest, _ examination: Examination, isKept: Bool) {
        self.init()
        key = query.key
        verdict = "fetch"
        lifetimeSeconds = examination.freshness.lifetime.seconds
        lifetimeSource = examination.freshness.source.word
        controlField = examination.controlSource.word
        staleWhileRevalidateSeconds = Int64(examination.staleWhileRevalidateSeconds)
        staleIfErrorSeconds = Int64(examination.staleIfErrorSeconds)
        isStored = isKept
        storingReason = examination.notStored?.word ?? (isKept ? "allowed" : "no-room")
    }

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
