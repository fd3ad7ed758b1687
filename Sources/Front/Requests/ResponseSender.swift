import Ground
import HTTPRules
import NIOCore
import Platform
import Store
import Telemetry
import Wire

/// Sender of the responses of one connection or stream, one after the other.
///
/// Composes heads, sends bodies that are in memory, and counts and logs each response. A
/// ``ResponseWriter`` transports them.
///
/// Confined to its event loop.
final class ResponseSender {
    /// Context of the sender's loop.
    let context: EventLoopContext
    let plane: Plane
    let protocolVersion: HTTPVersion
    /// The writer; `nil` after the connection or stream has ended.
    var writer: (any ResponseWriter)?
    /// The client; `nil` without a connection or stream.
    var client: Client?
    /// True if the request is a HEAD.
    var isHeadRequest = false
    /// True for an HTTP/1.0 request.
    var isHTTP10 = false
    /// True while a response waits for data or for the client.
    var isResponding = false
    /// Instant by which what the response waits for must arrive, while ``isResponding``.
    var deadline = Instant.distantFuture
    /// True if the node has aborted the response.
    var isAborted = false
    /// True once the connection must close after the response in progress, because the node is
    /// stopping.
    var isDraining = false
    /// True if this is the last response, as the client requested or the node decided.
    var closesAfterResponse = false
    /// Counters of the request's site; `nil` if it is for none.
    var siteCounters: SiteCounters?
    /// Key of the last request that memory could not serve.
    var requestKey: [UInt8] = []
    /// Number of the request, from which its ID is made unless ``clientRequestID`` is set.
    private var requestNumber: UInt64 = 0
    /// Request ID sent by the client; empty if there is none, or it is not safe to repeat.
    private var clientRequestID: [UInt8] = []
    /// Field lines to add to this response.
    var extraFieldLines: [UInt8] = []
    /// True if the response is to have the field Nuthatch-Decision.
    var includesDecision = false
    /// Pieces of the body to write next; kept for its capacity.
    var slices: [ByteBuffer] = []
    /// The rest of a body that is sent from an entry as fast as the client reads it.
    var entryBody: (entry: MemoryEntry, parts: [ResponseBodyPart])?

    /// When the request's head was read.
    var startedAt = Instant.zero
    /// How the cache contributed to the response.
    var cacheResult = CacheOutcome.generated
    /// The request for the access log; `nil` without a log, or without a request in progress.
    private var logged: LoggedRequest?
    /// The client that a trusted proxy reports for the logged request.
    private var loggedClient: IPAddress?
    /// Status of the response, set with its head.
    var status: UInt16 = 0
    /// Bytes of the body that were passed to the writer.
    var bodyBytes: UInt64 = 0

    var settings: NodeSettings { context.settings }

    /// Creates a sender without a client.
    init(
        on context: EventLoopContext, plane: Plane,
        protocolVersion: HTTPVersion
    ) {
        self.context = context
        self.plane = plane
        self.protocolVersion = protocolVersion
        slices.reserveCapacity(16)
    }

    /// Output bytes that wait in the writer, see ``ResponseWriter/queuedBytes``; 0 without one.
    var queuedBytes: Int { writer?.queuedBytes ?? 0 }

    /// The Connection field to send.
    var connectionOption: ConnectionOption {
        guard protocolVersion == .http1 else { return .none }
        return closesAfterResponse ? .close : isHTTP10 ? .keepAlive : .none
    }

    // MARK: Start and end of a response

    /// Makes the response wait for something that must arrive by `deadline`.
    func wait(until deadline: Instant) {
        isResponding = true
        self.deadline = deadline
    }

    /// Records the status of a response that begins, and counts it for a client.
    @inline(__always)
    func beginResponse(status: UInt16) {
        self.status = status
        bodyBytes = 0
        // Admin and internal requests are excluded from the metrics.
        guard plane == .data else { return }
        context.responseStarted(status, cacheResult)
        if let siteCounters { siteCounters.addResponse(status, cacheResult) }
    }

    /// Counts and logs the response, and reports its end to the writer.
    @inline(__always)
    func finishResponse() {
        if !extraFieldLines.isEmpty { extraFieldLines.removeAll(keepingCapacity: true) }
        if plane == .data {
            context.responseEnded(cacheResult, begunAt: startedAt, bodyBytes: bodyBytes)
            if let siteCounters {
                siteCounters.add(.bodyBytes(cacheResult), Int(clamping: bodyBytes))
            }
        }
        if logged != nil { log(isComplete: true) }
        isResponding = false
        writer?.responseEnded()
    }

    /// Processes requests that the client sent while a response was pending.
    func resumeRequests() {
        guard !isResponding else { return }
        writer?.resumeRequests()
    }

    /// Aborts the response, so that the client does not take it for complete.
    func abort() {
        entryBody = nil
        if !isAborted, plane == .data { context.counters.add(.responsesAborted) }
        isAborted = true
        writer?.abort()
    }

    /// Logs a response that is not complete, and resets the state, after the connection or stream
    /// has ended.
    func connectionClosed() {
        if logged != nil { log(isComplete: false) }
        if isResponding, !isAborted, client?.isAborted != true, plane == .data {
            context.counters.add(.responsesClientClosed)
        }
        isAborted = false
        writer = nil
        client = nil
        entryBody = nil
        isResponding = false
        extraFieldLines.removeAll(keepingCapacity: true)
        resetSite()
    }

    /// Resets the state of the previous request's site.
    func resetSite() {
        siteCounters = nil
        includesDecision = false
    }

    // MARK: The access log

    /// Prepares the log line of a request.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - client: the client that a trusted proxy reports; `nil` if none does.
    func beginLog(_ request: LoggedRequest, forwardedFor client: IPAddress?) {
        loggedClient = client
        logged = request
    }

    /// Logs the response that has ended.
    private func log(isComplete: Bool) {
        guard let request = logged else { return }
        logged = nil
        context.log(
            AccessLine(
                request, remote: loggedClient.map { "\($0)" } ?? client?.remote ?? "-",
                milliseconds: SystemClock.wallMilliseconds(), status: status,
                bodyBytes: bodyBytes, outcome: cacheResult.logText, isComplete: isComplete,
                duration: SystemClock.now() - request.startedAt))
    }
}

/// The ID of the request in progress.
extension ResponseSender {
    /// Assigns an ID to the request with these fields, the client's own if it is acceptable.
    @inline(__always)
    func assignRequestID(_ fields: borrowing FieldTable, _ bytes: Span<UInt8>) {
        assignGeneratedID()
        if fields.contains(.xRequestID) { useClientRequestID(fields, bytes) }
    }

    /// Assigns a generated ID, also to a request that could not be parsed.
    @inline(__always)
    func assignGeneratedID() {
        requestNumber = context.requestIDs.next()
        if !clientRequestID.isEmpty { clientRequestID.removeAll(keepingCapacity: true) }
    }

    /// Adopts the ID sent by the client if there is exactly one and it is safe to repeat.
    @inline(never)
    private func useClientRequestID(_ fields: borrowing FieldTable, _ bytes: Span<UInt8>) {
        var given: Range<Int>?
        for index in 0..<fields.count {
            let line = fields[index]
            guard line.id == .xRequestID else { continue }
            guard given == nil else { return }
            given = line.value.range
        }
        guard let given, RequestID.isSafe(bytes, at: given) else { return }
        for index in given { clientRequestID.append(bytes[index]) }
    }

    /// ID of the request in progress.
    var requestID: RequestID { RequestID(clientRequestID) ?? context.requestIDs.id(requestNumber) }

    /// Returns the correlation to pass on with fetches for the request with this head.
    func cause(_ request: BufferedRequest) -> RequestCorrelation {
        RequestCorrelation(requestID, TraceContext(request.lines, in: request.head.span))
    }

    /// Appends the lines that differ between responses of one entry, and the end of the head.
    @inline(__always)
    func appendTail(
        _ facts: EntryMetadata, _ note: CacheHandling, to writer: inout HeadWriter, now: Instant
    ) {
        if clientRequestID.isEmpty {
            writer.append(context.requestIDs.prefixDigits, HexDigits(requestNumber))
        } else {
            writer.append("X-Request-Id: ")
            writer.append(clientRequestID)
            writer.append("\r\n")
        }
        writer.appendTail(facts, handling: note, date: context.dateLine, connectionOption, now: now)
    }
}

extension HeadWriter {
    /// Appends `X-Request-Id` with a generated ID.
    @inline(__always)
    fileprivate mutating func append(_ run: HexDigits, _ number: HexDigits) {
        append("X-Request-Id: ")
        append(digits: run.high)
        append(digits: run.low)
        append(digits: number.high)
        append(digits: number.low)
        append("\r\n")
    }
}
