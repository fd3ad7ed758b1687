package import Foundation

/// A response of the scripted origin, with its delays and faults.
///
/// A value that is built up: the content first, then delays and faults.
package struct OriginResponse: Sendable {
    /// How the end of the body is indicated.
    package enum Framing: Sendable {
        /// `Content-Length` with the true length.
        case length
        /// `Content-Length` with a length other than the body's.
        case falseLength(Int)
        /// Chunks of at most this many bytes.
        case chunked(bytesMax: Int)
        /// HTTP/1.1 `Connection: close`; the body ends with the connection.
        case close
        /// A status line of HTTP/1.0; the body ends with the connection.
        case http10Close
    }

    /// A condition to wait for.
    package enum Pause: Sendable {
        /// Until the test opens the gate.
        case gate(Gate)
        /// A time in seconds.
        case seconds(Double)
    }

    /// How a connection ends prematurely.
    package enum Disconnect: Sendable {
        /// Orderly, with FIN.
        case close
        /// With RST.
        case reset
    }

    /// Status code and reason phrase.
    package var status: String
    /// Field lines in addition to `Content-Type`, `Date` and the framing fields.
    package var fields: [String]
    /// The body; `nil` for a response without one, such as 304.
    package var body: TestImage?
    /// How the end of the body is indicated.
    package var framing: Framing
    /// Pauses before the first byte of the head.
    package var headPauses: [Pause] = []
    /// Pauses after that many bytes of the body.
    package var bodyPauses: [(offset: Int, stop: Pause)] = []
    /// Where and how the response is cut off; an offset of `nil` means within the head.
    package var truncation: (offset: Int?, how: Disconnect)?
    /// True to close the connection after the complete response without announcing it.
    package var closesAfter = false
    /// Raw bytes that replace everything above.
    package var raw: [UInt8]?

    /// Creates a response with a body.
    ///
    /// - Parameters:
    ///   - body: The body, whose type is sent as `Content-Type` unless `fields` has one.
    ///   - status: Status code and reason phrase.
    ///   - framing: How the end of the body is indicated.
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

    /// Returns a response of exactly these bytes, after which the connection stays open.
    package static func raw(_ bytes: [UInt8]) -> OriginResponse {
        var response = OriginResponse(nil)
        response.raw = bytes
        return response
    }

    /// Returns a response with a text body.
    package static func text(
        _ text: String, status: String = "200 OK", contentType: String = "text/plain",
        fields: [String] = []
    ) -> OriginResponse {
        let body = TestImage(name: "text", contentType: contentType, bytes: Array(text.utf8))
        return OriginResponse(body, status: status, fields: fields)
    }

    /// Returns a `304 Not Modified` response with these field lines.
    package static func notModified(_ fields: [String]) -> OriginResponse {
        OriginResponse(nil, status: "304 Not Modified", fields: fields)
    }

    /// Returns a copy that waits before its head.
    package func delayingHead(_ stop: Pause) -> OriginResponse {
        changed { $0.headPauses.append(stop) }
    }

    /// Returns a copy that waits once `offset` bytes of the body are sent.
    package func stalling(at offset: Int, _ stop: Pause) -> OriginResponse {
        changed { $0.bodyPauses.append((offset, stop)) }
    }

    /// Returns a copy that is cut off after `offset` bytes of the body, chunk framing not counted.
    package func truncated(after offset: Int, _ how: Disconnect) -> OriginResponse {
        changed { $0.truncation = (offset, how) }
    }

    /// Returns a copy that is cut off in the middle of its head.
    package func truncatedInHead(_ how: Disconnect) -> OriginResponse {
        changed { $0.truncation = (nil, how) }
    }

    /// Returns a copy in pieces of `bytesMax` bytes with a pause of `seconds` before each.
    package func dripping(bytesMax: Int, seconds: Double) -> OriginResponse {
        let count = body?.byteCount ?? 0
        return changed { response in
            for offset in stride(from: 0, to: count, by: bytesMax) {
                response.bodyPauses.append((offset, .seconds(seconds)))
            }
        }
    }

    /// Returns a copy after which the connection is closed without announcement.
    package func closingConnection() -> OriginResponse {
        changed { $0.closesAfter = true }
    }

    private func changed(_ change: (inout OriginResponse) -> Void) -> OriginResponse {
        var copy = self
        change(&copy)
        return copy
    }
}

/// One step of an origin's connection while it sends a response.
enum OriginResponseStep {
    /// Send bytes.
    case send([UInt8])
    /// Send part of a body in pieces, as the peer accepts them.
    case sendBody(TestImage, Range<Int>)
    /// Wait.
    case pause(OriginResponse.Pause)
    /// End the connection once everything is sent; no further request is read.
    case end(OriginResponse.Disconnect)
}

extension OriginResponse {
    /// Returns the response as a list of steps.
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

    /// Returns the parts of the body and the pauses between them, up to the point of truncation.
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

/// The date format of HTTP (RFC 9110 §5.6.7, IMF-fixdate).
package enum HTTPDateFormat {
    /// Returns the date as text, for example `Sun, 06 Nov 1994 08:49:37 GMT`.
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
