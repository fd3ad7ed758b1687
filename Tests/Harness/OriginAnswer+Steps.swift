import Foundation

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
