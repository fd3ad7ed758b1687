import Admin
import Ground
import HTTPRules
import NIOCore

/// Responses that the node generates.
extension ResponseSender {
    /// Responds with a problem document; the connection stays open unless its framing is no longer
    /// reliable.
    ///
    /// - Parameters:
    ///   - problem: the problem to send.
    ///   - more: further field lines, each with its end.
    ///   - status: the Cache-Status to send to a client.
    func sendProblem(
        _ problem: Problem, fields more: String = "",
        _ status: CacheStatus = CacheStatus(.generated)
    ) {
        if problem.closesConnection { closesAfterResponse = true }
        var body: [UInt8] = []
        problem.document.append(to: &body)
        var fields = Self.noStore + more
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
        head.writeString("HTTP/1.1 \(status) \(StatusLine.standardReason(status))\r\n")
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
            bodyBytes = UInt64(body.count)
        }
        finishResponse()
    }

    /// Sends a JSON document with `Cache-Control: no-store`.
    func send(_ document: JSON, status: UInt16 = 200, fields: String = "") {
        sendText(
            status: status, contentType: "application/json", document.formattedBytes,
            fields: Self.noStore + fields)
    }

    /// The field line of responses that must not be stored.
    static let noStore = "Cache-Control: no-store\r\n"
}
