package import Foundation

/// What the origin answers, how, and what goes wrong on the way.
///
/// A value to be built up: what it shall be first, then its stops and its damage.
package struct OriginResponse: Sendable {
    /// How the end of the body is made known.
    package enum Framing: Sendable {
        /// `Content-Length` of the true length.
        case length
        /// `Content-Length` of another length than the body has.
        case falseLength(Int)
        /// Chunks of at most this many bytes.
        case chunked(bytesMax: Int)
        /// HTTP/1.1 `Connection: close`, the body ends with the connection.
        case close
        /// Status line of HTTP/1.0, the body ends with the connection.
        case http10Close
    }

    /// Something to wait for.
    package enum Pause: Sendable {
        /// Until the test opens the gate.
        case gate(Gate)
        /// For a time.
        case seconds(Double)
    }

    /// How a connection ends before its time.
    package enum Disconnect: Sendable {
        /// Orderly, with FIN.
        case close
        /// With RST.
        case reset
    }

    /// Status code and reason.
    package var status: String
    /// Field lines beside those of the framing, `Content-Type` and `Date`.
    package var fields: [String]
    /// The body; none for such as 304.
    package var body: TestImage?
    /// How its end is made known.
    package var framing: Framing
    /// What to wait for before the first byte of the head.
    package var headPauses: [Pause] = []
    /// What to wait for after so many bytes of the body.
    package var bodyPauses: [(offset: Int, stop: Pause)] = []
    /// Where and how the body is cut off; an offset of nil means within the head.
    package var truncation: (offset: Int?, how: Disconnect)?
    /// Whether the connection is closed after the whole answer without having said so.
    package var closesAfter = false
    /// Whole bytes to be sent instead of everything above.
    package var raw: [UInt8]?

    /// An answer with a body.
    ///
    /// - Parameters:
    ///   - body: The body, whose type becomes `Content-Type` unless `fields` holds one.
    ///   - status: Status code and reason.
    ///   - framing: How the end of the body is made known.
    ///   - fields: Further field lines, such as `Cache-Control: max-age=60`.
    package init(
        _ body: TestImage?, status: String = "200 OK", framing: Framing = .length,
        fields: [String] = []
    ) {
        self.body = body
        self.status = status
        self.framing = framing
        self.fields = fields
    }

    /// An answer of these very bytes, after which the connection stays open.
    package static func raw(_ bytes: [UInt8]) -> OriginResponse {
        var response = OriginResponse(nil)
        response.raw = bytes
        return response
    }

    /// An answer of text.
    package static func text(
        _ text: String, status: String = "200 OK", contentType: String = "text/plain",
        fields: [String] = []
    ) -> OriginResponse {
        let body = TestImage(name: "text", contentType: contentType, bytes: Array(text.utf8))
        return OriginResponse(body, status: status, fields: fields)
    }

    /// `304 Not Modified` with these field lines.
    package static func notModified(_ fields: [String]) -> OriginResponse {
        OriginResponse(nil, status: "304 Not Modified", fields: fields)
    }

    /// The same answer, waiting before its head.
    package func delayingHead(_ stop: Pause) -> OriginResponse {
        changed { $0.headPauses.append(stop) }
    }

    /// The same answer, waiting once `offset` bytes of the body are on their way.
    package func stalling(at offset: Int, _ stop: Pause) -> OriginResponse {
        changed { $0.bodyPauses.append((offset, stop)) }
    }

    /// The same answer, cut off after `offset` bytes of the body, chunk framing not counted.
    package func truncated(after offset: Int, _ how: Disconnect) -> OriginResponse {
        changed { $0.truncation = (offset, how) }
    }

    /// The same answer, cut off in the middle of its head.
    package func truncatedInHead(_ how: Disconnect) -> OriginResponse {
        changed { $0.truncation = (nil, how) }
    }

    /// The same answer in pieces of `bytesMax` with a pause of `seconds` before each.
    package func dripping(bytesMax: Int, seconds: Double) -> OriginResponse {
        let count = body?.byteCount ?? 0
        return changed { response in
            for offset in stride(from: 0, to: count, by: bytesMax) {
                response.bodyPauses.append((offset, .seconds(seconds)))
            }
        }
    }

    /// The same answer, after which the connection is closed although nothing announced that.
    package func closingConnection() -> OriginResponse {
        changed { $0.closesAfter = true }
    }

    private func changed(_ change: (inout OriginResponse) -> Void) -> OriginResponse {
        var copy = self
        change(&copy)
        return copy
    }
}

/// What an origin's connection does next for an answer.
enum OriginResponseStep {
    /// Send bytes.
    case send([UInt8])
    /// Send part of a body, piece by piece as the peer takes it.
    case sendBody(TestImage, Range<Int>)
    /// Wait.
    case pause(OriginResponse.Pause)
    /// End the connection once everything is sent; no further request is read.
    case end(OriginResponse.Disconnect)
}

extension OriginResponse {
    /// The answer as a list of steps.
    func steps(isHead: Bool) -> [OriginResponseStep] {
        if let raw { return headPauses.map(OriginResponseStep.pause) + [.send(raw)] + ending }
        let head = headBytes
        var steps = headPauses.map(OriginResponseStep.pause)
        if let truncation, truncation.offset == nil {
            return steps + [.send(Array(head.prefix(head.count / 2))), .end(truncation.how)]
        }
        steps.append(.send(head))
        if let body, !isHead { steps += bodySteps(body) }
        return steps + ending
    }

    private var ending: [OriginResponseStep] {
        if let truncation { return [.end(truncation.how)] }
        if closesAfter { return [.end(.close)] }
        switch framing {
        case .close, .http10Close: return body == nil ? [] : [.end(.close)]
        default: return []
        }
    }

    private var headBytes: [UInt8] {
        var lines = [isHTTP10 ? "HTTP/1.0 \(status)" : "HTTP/1.1 \(status)"]
        lines += fields
        if !has("Date") { lines.append("Date: " + HTTPDateFormat.text(Date())) }
        if let body {
            if !has("Content-Type") { lines.append("Content-Type: " + body.contentType) }
            switch framing {
            case .length: lines.append("Content-Length: \(body.byteCount)")
            case .falseLength(let length): lines.append("Content-Length: \(length)")
            case .chunked: lines.append("Transfer-Encoding: chunked")
            case .close: lines.append("Connection: close")
            case .http10Close: break
            }
        }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private var isHTTP10: Bool {
        guard case .http10Close = framing else { return false }
        return true
    }

    private func has(_ name: String) -> Bool {
        fields.contains { $0.lowercased().hasPrefix(name.lowercased() + ":") }
    }

    /// Alternates between parts of the body and the stops between them, up to the cut.
    private func bodySteps(_ body: TestImage) -> [OriginResponseStep] {
        let end = min(truncation?.offset ?? body.byteCount, body.byteCount)
        let stops = bodyPauses.sorted { $0.offset < $1.offset }.filter { $0.offset <= end }
        var steps: [OriginResponseStep] = []
        var sent = 0
        for stop in stops {
            steps += bodyPart(body, sent..<max(sent, stop.offset))
            sent = max(sent, stop.offset)
            steps.append(.pause(stop.stop))
        }
        steps += bodyPart(body, sent..<end)
        if case .chunked = framing, truncation == nil {
            steps.append(.send(Array("0\r\n\r\n".utf8)))
        }
        return steps
    }

    private func bodyPart(_ body: TestImage, _ range: Range<Int>) -> [OriginResponseStep] {
        guard !range.isEmpty else { return [] }
        guard case .chunked(let bytesMax) = framing else { return [.sendBody(body, range)] }
        return stride(from: range.lowerBound, to: range.upperBound, by: bytesMax).flatMap { start in
            let chunk = start..<min(start + bytesMax, range.upperBound)
            let size = String(chunk.count, radix: 16) + "\r\n"
            return [
                OriginResponseStep.send(Array(size.utf8)), .sendBody(body, chunk),
                .send(Array("\r\n".utf8)),
            ]
        }
    }
}

/// Dates as HTTP writes them (RFC 9110 §5.6.7, IMF-fixdate).
package enum HTTPDateFormat {
    /// The date as text, for example `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func text(_ date: Date) -> String {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let part = calendar.dateComponents(
            [.year, .month, .day, .hour, .minute, .second, .weekday], from: date)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let day = days[(part.weekday ?? 1) - 1]
        let month = months[(part.month ?? 1) - 1]
        let clock = [part.hour, part.minute, part.second].map { padded($0 ?? 0) }
        return "\(day), \(padded(part.day ?? 0)) \(month) \(part.year ?? 0) "
            + clock.joined(separator: ":") + " GMT"
    }

    private static func padded(_ number: Int) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
