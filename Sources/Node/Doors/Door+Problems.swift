import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

extension Door {
    /// Answers the request with a problem document; the connection goes on unless its framing can
    /// no longer be trusted.
    ///
    /// `status` says what was asked of the origin.
    func answerProblem(
        _ problem: Problem, fields more: String = "",
        _ status: CacheStatus = CacheStatus(.made)
    ) {
        if problem.closes { closesAfterAnswer = true }
        var body: [UInt8] = []
        problem.document.append(to: &body)
        var fields = "Cache-Control: no-store\r\n" + more
        if side == .data {
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
    func refuse(_ problem: Problem, of request: PendingRequest? = nil) {
        startedAt = SystemClock.now()
        if let request {
            nameAndLog(request)
        } else {
            nameUnread()
            if hall.hasAccessLog {
                logged = LoggedRequest(unreadableOn: side, as: requestID, startedAt)
            }
        }
        part = .none
        (answeredStatus, answeredBytes) = (0, 0)
        forgetSite()
        answerProblem(problem)
    }

    private func nameAndLog(_ request: PendingRequest) {
        let head = request.head.span
        // It was read once; limits may have changed since.
        guard case .head = parser.parse(head, from: 0) else { return nameUnread() }
        read(head, 0..<request.head.count)
        isHeadRequest = parser.method == .head
        nameRequest(head)
        guard hall.hasAccessLog else { return }
        logged = LoggedRequest(
            parser, head, over: carriage, on: side, as: requestID, startedAt)
    }

    /// Gives up the answer in progress, of which nothing was sent.
    func fail(with problem: Problem) {
        let status = status(of: problem)
        if let waiting { dropRun(waiting) }
        waiting = nil
        abandonUpload()
        if side == .data, let counter = problem.counter { hall.counters.add(counter) }
        answerProblem(problem, status)
        goOn()
    }

    /// What Cache-Status says of an answer that the fetch did not bring.
    private func status(of problem: Problem) -> CacheStatus {
        guard let waiting, let view = waiting.run?.view,
            view.wasAsked || problem.originStatus != nil
        else { return CacheStatus(.made) }
        var status = CacheStatus(.forwarded(waiting.reason))
        status.forwardStatus = problem.originStatus
        status.isCollapsed = waiting.isCollapsed
        status.isFenced = !hall.fence.isOpen(at: SystemClock.now())
        status.key = waitingKey
        status.detail = view.wasAsked ? "origin" : "peer"
        return status
    }

    /// A whole answer of ours, to HEAD without its body.
    func sendText(status: UInt16, contentType: String, _ body: [UInt8], fields: String) {
        beginAnswer(status: status)
        var head = ByteBuffer()
        head.writeString("HTTP/1.1 \(status) \(ReasonPhrase.of(status))\r\n")
        head.writeBytes(hall.dateLine.bytes)
        head.writeString("Content-Type: \(contentType)\r\nContent-Length: \(body.count)\r\n")
        head.writeString("X-Request-Id: \(requestID)\r\n")
        head.writeString("X-Content-Type-Options: nosniff\r\n\(fields)")
        if siteCounters != nil, status < 400 { head.writeString("Cache-Status: nuthatch\r\n") }
        head.writeBytes(extraLines)
        switch connectionNote {
        case .none: break
        case .close: head.writeString("Connection: close\r\n")
        case .keepAlive: head.writeString("Connection: keep-alive\r\n")
        }
        head.writeString("\r\n")
        outlet?.send(head: head)
        if !isHeadRequest, !body.isEmpty {
            outlet?.send(body: ByteBuffer(bytes: body))
            answeredBytes = UInt64(body.count)
        }
        finishAnswer()
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
