import Ground
import Serving
import Store
import Telemetry

/// What each hit asks of what it shares with others, and what is counted of it.
///
/// Calls of their own, in which those objects are borrowed: a door would count a reference to each,
/// and where all loops share one, all cores would write to the line that its count is in.
extension Hall {
    /// The keyed hash of the key in `range`.
    @inline(never)
    func hash(_ key: Span<UInt8>, _ range: Range<Int>) -> UInt64 { store.hash(key, range) }

    /// What memory has under the key in `range`, noted as used; nil if nothing.
    @inline(never)
    func find(_ key: Span<UInt8>, _ range: Range<Int>, hash: UInt64) -> Resident? {
        store.find(key, range, hash: hash)
    }

    /// Whether a stored answer may be given to `request` unasked, as long as nothing that was
    /// invalidated can be unknown here.
    @inline(never)
    func judge(_ facts: EntryFacts, for request: RequestFacts, now: Instant) -> Verdict {
        fence.judge(facts, for: request, now: now)
    }

    /// Counts an answer of this status, and how the cache took part in it.
    @inline(never)
    func answerBegan(_ status: UInt16, _ part: CachePart) {
        counters.add(.answers(status: status))
        counters.add(part.metric)
    }

    /// Counts how long a request has taken, and the bytes of its answer's body.
    @inline(never)
    func answerEnded(_ part: CachePart, begunAt: Instant, bodyBytes: UInt64) {
        outcomes.add(
            part.outcome, nanoseconds: (SystemClock.now() - begunAt).nanoseconds,
            bodyBytes: bodyBytes)
    }
}
