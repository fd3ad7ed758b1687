import Cluster
import Ground
import Serving

/// A future event of an invalidation simulation; unlabelled numbers are node indices.
enum SimulatedEvent: Sendable {
    case arrive(from: Int, to: Int, line: UInt64, SimulatedMessage)
    case tick(Int, run: Int)
    case sync(Int, run: Int)
    case originRequested(Int, run: Int, fetch: UInt64, etag: Int?)
    case originResponded(Int, run: Int, fetch: UInt64, OriginReply)
    case lookupDeadline(Int, run: Int, fetch: UInt64)
    case promoted(Int, run: Int, fetch: UInt64)
    case reinserted(Int, run: Int, key: Int)
    case scanned(Int, run: Int)
    case housekeeping(Int, run: Int)
    case read(Int, key: Int)
    case client
    case purge(key: Int)
    case fault
    case isolate
    case reconnect(Int, Int)
    case breakLink(Int, Int, line: UInt64)
    case start(Int)
    case stop(Int, run: Int)
    case seedsResolved(Int, run: Int)
    case checkDiscovery(Int, run: Int)
    case advanceShutdown(Int, run: Int)
    case loseMajority
    case directoryLost(Int, run: Int)
    case copyAndCutOff
    case cutOff(from: Int)
    case putBack(Int)
    case runOperator
    case updateMembership
    case checkReceipts

    /// The node whose process handles the event, and the run that alone handles it, `nil` for any
    /// run.
    ///
    /// `nil` for events that no process handles.
    var owner: (index: Int, run: Int?)? {
        switch self {
        case .arrive(_, let to, _, _): (to, nil)
        case .tick(let index, let run), .sync(let index, let run),
            .originResponded(let index, let run, _, _), .lookupDeadline(let index, let run, _),
            .promoted(let index, let run, _), .reinserted(let index, let run, _),
            .scanned(let index, let run), .housekeeping(let index, let run),
            .stop(let index, let run), .seedsResolved(let index, let run),
            .checkDiscovery(let index, let run),
            .advanceShutdown(let index, let run), .directoryLost(let index, let run):
            (index, run)
        case .read(let index, _): (index, nil)
        case .originRequested, .client, .purge, .fault, .isolate, .reconnect, .breakLink, .start,
            .updateMembership, .checkReceipts, .loseMajority, .copyAndCutOff, .cutOff, .putBack,
            .runOperator:
            nil
        }
    }
}

/// A message between nodes; the number of a request is repeated in its response.
enum SimulatedMessage: Sendable {
    case invalidation(InvalidationMessage)
    case request(UInt64, OwnerSearch.QueryKind, key: Int, UnsentInvalidations)
    case response(UInt64, EntryReply)
    case offer(key: Int, TransferKind)
}

/// The response to a request for an entry.
enum EntryReply: Sendable {
    case held(version: Int, freshFor: Interval, validationAge: Interval)
    case status(OwnerSearch.Reply)

    /// Creates the response with an entry, at a time on the node's clock.
    init(_ entry: SimulatedEntry, at now: Instant) {
        self = .held(
            version: entry.contentVersion, freshFor: entry.freshUntil - now,
            validationAge: now - entry.validatedAt)
    }
}

/// The response of the origin.
enum OriginReply: Sendable {
    case failed
    /// A version of the object; `isValid` makes it a 304.
    case version(Int, isValid: Bool, isShareable: Bool)
}
