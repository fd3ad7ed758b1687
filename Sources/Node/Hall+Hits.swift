import Ground
import Serving
import Store
import Telemetry

/// What each hit asks of what it shares with others, and what is counted of it.
///
/// Calls of their own, in which those objects are borrowed: a door would count a reference to each,
/// and where all loops share one, all cores would write to the line that its count is in.
extension Hall {
    @inline(never)
    func hash(_ key: Span<UInt8>, _ range: Range<Int>) -> UInt64 { store.hash(key, range) }

    @inline(never)
    func find(_ key: Span<UInt8>, _ range: Range<Int>, hash: UInt64) -> Resident? {
        store.find(key, range, hash: hash)
    }

    @inline(never)
    func judge(_ facts: EntryFacts, for request: RequestFacts, now: Instant) -> Verdict {
        fence.judge(facts, for: request, now: now)
    }

    @inline(never)
    func answerBegan(_ status: UInt16, _ part: CachePart) {
        counters.add(.answers(status: status))
        counters.add(part.metric)
    }

    @inline(never)
    func answerEnded(_ part: CachePart, begunAt: Instant, bodyBytes: UInt64) {
        outcomes.add(
            part.outcome, nanoseconds: (SystemClock.now() - begunAt).nanoseconds,
            bodyBytes: bodyBytes)
    }
}
