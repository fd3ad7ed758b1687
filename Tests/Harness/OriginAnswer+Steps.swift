import Foundation

/// What an origin's connection does next for an answer.
enum OriginStep {
    /// Send bytes.
    case send([UInt8])
    /// Send part of a body, piece by piece as the peer takes it.
    case sendBody(TestImage, Range<Int>)
    /// Wait.
    case stop(OriginAnswer.Stop)
    /// End the connection once everything is sent; no further request is read.
    case end(OriginAnswer.Cut)
}

extension OriginAnswer {
    /// The answer as a list of steps.
    func steps(isHead: Bool) -> [OriginStep] {
        if let raw { return headStops.map(OriginStep.stop) + [.send(raw)] + ending }
        let head = headBytes
        var steps = headStops.map(OriginStep.stop)
        if let cut, cut.offset == nil {
            return steps + [.send(Array(head.prefix(head.count / 2))), .end(cut.how)]
        }
        steps.append(.send(head))
        if let body, !isHead { steps += bodySteps(body) }
        return steps + ending
    }

    private var ending: [OriginStep] {
        if let cut { return [.end(cut.how)] }
        if closesAfter { return [.end(.close)] }
        switch framing {
        case .close, .close10: return body == nil ? [] : [.end(.close)]
        default: return []
        }
    }

    private var headBytes: [UInt8] {
        var lines = [isHTTP10 ? "HTTP/1.0 \(status)" : "HTTP/1.1 \(status)"]
        lines += fields
        if !has("Date") { lines.append("Date: " + HTTPDate.text(Date())) }
        if let body {
            if !has("Content-Type") { lines.append("Content-Type: " + body.contentType) }
            switch framing {
            case .length: lines.append("Content-Length: \(body.byteCount)")
            case .claimed(let length): lines.append("Content-Length: \(length)")
            case .chunked: lines.append("Transfer-Encoding: chunked")
            case .close: lines.append("Connection: close")
            case .close10: break
            }
        }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private var isHTTP10: Bool {
        guard case .close10 = framing else { return false }
        return true
    }

    private func has(_ name: String) -> Bool {
        fields.contains { $0.lowercased().hasPrefix(name.lowercased() + ":") }
    }

    /// Alternates between parts of the body and the stops between them, up to the cut.
    private func bodySteps(_ body: TestImage) -> [OriginStep] {
        let end = min(cut?.offset ?? body.byteCount, body.byteCount)
        let stops = bodyStops.sorted { $0.offset < $1.offset }.filter { $0.offset <= end }
        var steps: [OriginStep] = []
        var sent = 0
        for stop in stops {
            steps += part(body, sent..<max(sent, stop.offset))
            sent = max(sent, stop.offset)
            steps.append(.stop(stop.stop))
        }
        steps += part(body, sent..<end)
        if case .chunked = framing, cut == nil { steps.append(.send(Array("0\r\n\r\n".utf8))) }
        return steps
    }

    private func part(_ body: TestImage, _ range: Range<Int>) -> [OriginStep] {
        guard !range.isEmpty else { return [] }
        guard case .chunked(let bytesMax) = framing else { return [.sendBody(body, range)] }
        return stride(from: range.lowerBound, to: range.upperBound, by: bytesMax).flatMap { start in
            let chunk = start..<min(start + bytesMax, range.upperBound)
            let size = String(chunk.count, radix: 16) + "\r\n"
            return [
                OriginStep.send(Array(size.utf8)), .sendBody(body, chunk),
                .send(Array("\r\n".utf8)),
            ]
        }
    }
}
