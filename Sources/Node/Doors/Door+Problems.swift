import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

extension RequestHandler {
    /// Answers the request with a problem document; the connection goes on unless its framing can
    /// no longer be trusted.
    ///
    /// `status` says what was asked of the origin.
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

    /// Refuses what was no request, or not one in time; it is the last answer.
    ///
    /// `request` is what could be read, if only its body is at fault.
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
        cacheResult = .none
        (responseStatus, responseBodyBytes) = (0, 0)
        resetSite()
        sendProblem(problem)
    }

    private func identifyAndLog(_ request: BufferedRequest) {
        let head = request.head.span
        // It was read once; limits may have changed since.
        guard case .head = parser.parse(head, from: 0) else { return assignGeneratedID() }
        read(head, 0..<request.head.count)
        isHeadRequest = parser.method == .head
        assignRequestID(head)
        guard context.hasAccessLog else { return }
        logged = LoggedRequest(
            parser, head, over: protocolVersion, on: plane, as: requestID, startedAt)
    }

    /// Gives up the answer in progress, of which nothing was sent.
    func fail(with problem: Problem) {
        let status = cacheStatus(of: problem)
        if let pendingResponse { leaveFetch(pendingResponse) }
        pendingResponse = nil
        abandonUpload()
        if plane == .data, let counter = problem.counter { context.counters.add(counter) }
        sendProblem(problem, status)
        resumeRequests()
    }

    /// What Cache-Status says of an answer that the fetch did not bring.
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

    /// A whole answer of ours, to HEAD without its body.
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

/// The reason phrases of RFC 9110 §15, for people who read status lines.
enum ReasonPhrase {
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
