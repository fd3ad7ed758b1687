import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

extension RequestHandler {
    /// Returns which part of an entry a request selects by ranges and conditions.
    func select(
        _ request: BufferedRequest, _ facts: RequestTraits, of entry: EntryMetadata,
        _ head: RenderedHead
    ) -> Selection {
        let tag = head.slice(head.entityTag)
        return Selection.decide(
            facts, lines: request.lines, in: request.head.span, entityTag: tag.span, facts: entry,
            rangesMax: settings.rangesMax, now: SystemClock.wallTime())
    }

    /// Sends the selected part of an entry.
    func send(
        _ selection: Selection, of entry: MemoryEntry, handling: CacheHandling, isHead: Bool,
        now: Instant
    ) {
        let head = RenderedHead(entry)
        switch selection {
        case .whole: sendWhole(entry, handling: handling, isHead: isHead, now: now)
        case .notModified:
            writer?.retain(entry)
            sendNotModified(head, entry.metadata, handling, now: now)
        case .preconditionFailed: sendProblem(.preconditionFailed)
        case .unsatisfiable: sendRangeNotSatisfiable(size: entry.metadata.size)
        case .parts(let ranges) where ranges.count == 1:
            sendPartialHead(ranges[0], head, entry.metadata, handling, now: now)
            let range = ranges[0]
            stream(entry, [.body(from: range.first, count: range.count)])
            proceed()
        case .parts(let ranges):
            sendMultipart(ranges, of: entry, handling, now: now)
        }
    }

    /// Sends 304 (RFC 9110 §15.4.5).
    func sendNotModified(
        _ head: RenderedHead, _ facts: EntryMetadata, _ note: CacheHandling, now: Instant
    ) {
        if !note.isHit { addCacheStatus(note, facts, now: now) }
        sendHead(
            Self.notModifiedLine, status: 304, head, from: head.layout.notModifiedStart
        ) {
            appendTail(facts, note, to: &$0, now: now)
        }
        finishResponse()
    }

    /// Sends 416 with the complete length (RFC 9110 §15.5.17).
    func sendRangeNotSatisfiable(size: UInt64) {
        sendProblem(
            .rangeNotSatisfiable(size: size), fields: "Content-Range: bytes */\(size)\r\n")
    }

    /// Sends the head of a 206 with one range.
    func sendPartialHead(
        _ range: ByteRange, _ head: RenderedHead, _ facts: EntryMetadata, _ note: CacheHandling,
        now: Instant
    ) {
        if !note.isHit { addCacheStatus(note, facts, now: now) }
        sendHead(
            Self.partialLine, status: 206, head, from: head.layout.partialStart
        ) {
            $0.append("content-length: ")
            $0.append(range.count)
            $0.append("\r\ncontent-range: bytes ")
            $0.append(range.first)
            $0.append("-")
            $0.append(range.last)
            $0.append("/")
            $0.append(facts.size)
            $0.append("\r\n")
            appendTail(facts, note, to: &$0, now: now)
        }
    }

    /// Sends a 206 with several ranges (RFC 9110 §14.6).
    private func sendMultipart(
        _ ranges: [ByteRange], of entry: MemoryEntry, _ note: CacheHandling, now: Instant
    ) {
        let head = RenderedHead(entry)
        let parts = MultipartRanges(
            ranges: ranges, size: entry.metadata.size,
            contentType: head.slice(head.layout.contentTypeExtent),
            boundary: .random(in: .min ... .max))
        var type: [UInt8] = []
        parts.appendContentType(to: &type)
        if !note.isHit { addCacheStatus(note, entry.metadata, now: now) }
        sendHead(
            Self.partialLine, status: 206, head, from: head.layout.multipartStart
        ) {
            $0.append("content-length: ")
            $0.append(parts.contentLength)
            $0.append("\r\ncontent-type: ")
            $0.append(type)
            $0.append("\r\n")
            appendTail(entry.metadata, note, to: &$0, now: now)
        }
        stream(entry, parts.segments)
        proceed()
    }

    /// Sends the head of a complete response whose body is being received.
    func sendWholeHead(
        _ response: FetchedResponse, _ framing: ResponseFraming, _ note: CacheHandling, now: Instant
    ) {
        if framing == .untilClose { closesAfterResponse = true }
        if !note.isHit { addCacheStatus(note, response.metadata, now: now) }
        let line = Array(response.head.bytes[..<response.head.statusLineEnd])
        sendHead(
            line, status: response.head.status, response.head,
            from: response.head.layout.partialStart
        ) {
            switch framing {
            case .length(let bytes):
                $0.append("content-length: ")
                $0.append(bytes)
                $0.append("\r\n")
            case .chunked where protocolVersion == .http1:
                $0.append("transfer-encoding: chunked\r\n")
            case .chunked, .untilClose, .none: break
            }
            appendTail(response.metadata, note, to: &$0, now: now)
        }
    }

    private static let notModifiedLine = Array("HTTP/1.1 304 Not Modified\r\n".utf8)
    private static let partialLine = Array("HTTP/1.1 206 Partial Content\r\n".utf8)

    /// Sends a head of the first line, the fields of `head` from `start`, and what `more` appends.
    func sendHead(
        _ firstLine: [UInt8], status: UInt16, _ head: RenderedHead, from start: Int,
        more: (inout HeadWriter) -> Void
    ) {
        beginResponse(status: status)
        let room =
            firstLine.count + head.bytes.count + extraFieldLines.count + HeadWriter.linesBytesMax
        let buffer = context.headBuffers.with { buffer in
            buffer.writeHead(room: room) { writer in
                writer.append(firstLine)
                writer.append(head.bytes, from: start)
                if !extraFieldLines.isEmpty { writer.append(extraFieldLines) }
                more(&writer)
            }
        }
        writer?.send(head: buffer)
    }
}

extension MultipartRanges {
    /// The parts of the content, in order.
    fileprivate var segments: [ResponseBodyPart] {
        var segments: [ResponseBodyPart] = []
        for index in ranges.indices {
            var text: [UInt8] = []
            appendPartHead(index, to: &text)
            segments.append(.text(ByteBuffer(bytes: text)))
            segments.append(.body(from: ranges[index].first, count: ranges[index].count))
        }
        var tail: [UInt8] = []
        appendTail(to: &tail)
        segments.append(.text(ByteBuffer(bytes: tail)))
        return segments
    }
}

extension RequestHandler {
    /// Responds with a problem document; the connection stays open unless its framing is no longer
    /// reliable.
    ///
    /// - Parameters:
    ///   - problem: the problem to send.
    ///   - more: further field lines, each with its end.
    ///   - status: the Cache-Status to send.
    func sendProblem(
        _ problem: Problem, fields more: String = "",
        _ status: CacheStatus = CacheStatus(.generated)
    ) {
        if problem.closesConnection { closesAfterResponse = true }
        var body: [UInt8] = []
        problem.document.append(to: &body)
        var fields = "Cache-Control: no-store\r\n" + more
        if plane == .data {
            var line: [UInt8] = []
            status.append(to: &line)
            fields += "Cache-Status: \(String(decoding: line, as: UTF8.self))\r\n"
        }
        if let seconds = problem.retryAfterSeconds { fields += "Retry-After: \(seconds)\r\n" }
        if let methods = problem.allowedMethods { fields += "Allow: \(methods)\r\n" }
        sendText(
            status: problem.status, contentType: ProblemDocument.contentType.description, body,
            fields: fields)
    }

    /// Refuses a request that is malformed or late; this is the last response of the connection.
    ///
    /// - Parameters:
    ///   - problem: the problem to send.
    ///   - request: the request head, if only its body is at fault; otherwise `nil`.
    func reject(_ problem: Problem, of request: BufferedRequest? = nil) {
        startedAt = SystemClock.now()
        if let request {
            identifyAndLog(request)
        } else {
            assignGeneratedID()
            if context.hasAccessLog {
                logged = LoggedRequest(unreadableOn: plane, as: requestID, startedAt)
            }
        }
        cacheResult = .generated
        (responseStatus, responseBodyBytes) = (0, 0)
        resetSite()
        sendProblem(problem)
    }

    /// Assigns the ID of a buffered request and prepares its log line.
    private func identifyAndLog(_ request: BufferedRequest) {
        let head = request.head.span
        // Parsed before, but limits may have changed since.
        guard case .head = parser.parse(head, from: 0) else { return assignGeneratedID() }
        read(head, 0..<request.head.count)
        isHeadRequest = parser.method == .head
        assignRequestID(head)
        guard context.hasAccessLog else { return }
        logged = LoggedRequest(
            parser, head, over: protocolVersion, on: plane, as: requestID, startedAt)
    }

    /// Ends the response in progress, of which nothing was sent, with `problem`.
    func fail(with problem: Problem) {
        let status = cacheStatus(of: problem)
        if let pendingResponse { leaveFetch(pendingResponse) }
        pendingResponse = nil
        abandonUpload()
        if plane == .data, let counter = problem.counter { context.counters.add(counter) }
        sendProblem(problem, status)
        resumeRequests()
    }

    /// Returns the Cache-Status of an error response.
    private func cacheStatus(of problem: Problem) -> CacheStatus {
        guard let pendingResponse, let view = pendingResponse.fetch?.snapshot,
            view.hasContactedOrigin || problem.originStatus != nil
        else { return CacheStatus(.generated) }
        var status = CacheStatus(.forwarded(pendingResponse.reason))
        status.forwardStatus = problem.originStatus
        status.isCollapsed = pendingResponse.isCollapsed
        status.isFenced = !context.fence.isOpen(at: SystemClock.now())
        status.key = pendingKey
        status.detail = view.hasContactedOrigin ? "origin" : "peer"
        return status
    }

    /// Sends a complete generated response, without the body for HEAD.
    ///
    /// - Parameters:
    ///   - status: the status code.
    ///   - contentType: value of the Content-Type field.
    ///   - body: the complete body.
    ///   - fields: further field lines, each with its end.
    func sendText(status: UInt16, contentType: String, _ body: [UInt8], fields: String) {
        beginResponse(status: status)
        var head = ByteBuffer()
        head.writeString("HTTP/1.1 \(status) \(ReasonPhrase.of(status))\r\n")
        head.writeBytes(context.dateLine.bytes)
        head.writeString("Content-Type: \(contentType)\r\nContent-Length: \(body.count)\r\n")
        head.writeString("X-Request-Id: \(requestID)\r\n")
        head.writeString("X-Content-Type-Options: nosniff\r\n\(fields)")
        if siteCounters != nil, status < 400 { head.writeString("Cache-Status: nuthatch\r\n") }
        head.writeBytes(extraFieldLines)
        switch connectionOption {
        case .none: break
        case .close: head.writeString("Connection: close\r\n")
        case .keepAlive: head.writeString("Connection: keep-alive\r\n")
        }
        head.writeString("\r\n")
        writer?.send(head: head)
        if !isHeadRequest, !body.isEmpty {
            writer?.send(body: ByteBuffer(bytes: body))
            responseBodyBytes = UInt64(body.count)
        }
        finishResponse()
    }
}

/// Reason phrases of status lines (RFC 9110 §15).
enum ReasonPhrase {
    /// Returns the reason phrase of a status; empty for others.
    static func of(_ status: UInt16) -> StaticString {
        switch status {
        case 200: "OK"
        case 202: "Accepted"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 451: "Unavailable For Legal Reasons"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }
}
